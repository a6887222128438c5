"""`save` and `load`: tensors, arrays and plain containers of them in one file, without pickle.

The file is a zip archive: `structure.json` says how the object is built, the bytes of each tensor
and array are a member of their own. Loading runs no code from the file, so a stranger's file is
only data.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import jax.numpy as jnp
import numpy as np

from ._dtype import Size, device, dtype, of
from ._file_memory import Loaded, Parts
from ._handle import Handle

_STRUCTURE = "structure.json"
_FORMAT = "leafax 2"
_FORMATS = (_FORMAT, "leafax 1")  # 1: each tensor in memory of its own, row by row


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:  # fmt: skip
    """Write tensors, arrays of NumPy, and dicts, lists, numbers and strings around them, to a file.

    Args:
      obj: what to write: a tensor, a `state_dict()`, an optimizer's `state_dict()`, ...
      f: a path, or a binary file that can be written.
      pickle_module, pickle_protocol: ignored: nothing is pickled.

    Raises:
      TypeError: for an object of any other type: the file holds data, not code.

    >>> import io, leafax
    >>> file = io.BytesIO()
    >>> leafax.save({"step": 3, "w": leafax.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> leafax.load(file)
    {'step': 3, 'w': tensor([1., 1.])}
    """
    target = _target(f)
    parts = Parts()
    structure = _encode(obj, parts)
    with zipfile.ZipFile(target, "w") as archive:
        memories = parts.write(archive)
        header = {"format": _FORMAT, "memories": memories, "object": structure}
        archive.writestr(_STRUCTURE, json.dumps(header))


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *,
    weights_only: bool | None = None, mmap: Any = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `save` wrote.

    Args:
      f: a path, or a binary file.
      map_location: the device to put tensors on; None for the default device. A file does not
        say where tensors were, so a dict is asked for "cpu", and a function is called with a
        tensor's storage and "cpu": it returns a storage on the device, or None.
      weights_only: accepted for PyTorch's sake: nothing but data is ever loaded.
      pickle_module, mmap, pickle_load_args: ignored.

    Raises:
      RuntimeError: if the file was not written by `save`.
    """
    source = _source(f)
    try:
        archive = zipfile.ZipFile(source)
        header = json.loads(archive.read(_STRUCTURE))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise RuntimeError(
            "this file was not written by leafax.save: for a file that torch.save wrote, see "
            "leafax.adapters"
        ) from error
    with archive:
        if header.get("format") not in _FORMATS:
            raise RuntimeError(f"unknown file format {header.get('format')!r}")
        tensors = Loaded(archive, header, lambda t: _moved(t, map_location))
        return _decode(header["object"], tensors)


def _target(f: Any) -> Any:
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError(
                "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
            )
        return f
    path = os.fspath(f)
    folder = os.path.dirname(path)
    if folder and not os.path.exists(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    return path


def _source(f: Any) -> Any:
    if isinstance(f, (str, os.PathLike)):
        return os.fspath(f)
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    return f


def _encode(x: Any, parts: Parts) -> Any:
    if isinstance(x, Handle):
        return parts.add(x)
    kind = type(x)
    if x is None or kind in (bool, int, str):
        return {"value": x}
    if kind is float:
        return {"float": x.hex()}
    if kind is complex:
        return {"complex": [x.real.hex(), x.imag.hex()]}
    if kind is bytes:
        return {"bytes": x.hex()}
    if kind is np.ndarray and x.dtype.kind in _PLAIN:
        return {"array": parts.add_array(x)}
    if isinstance(x, np.generic) and x.dtype.kind in _PLAIN:  # a random state, a mean of scores
        array = np.asarray(x)  # an empty string has a length there
        return {"scalar": [array.dtype.str, array.tobytes().hex()]}
    if isinstance(x, dtype):
        return {"dtype": x.np.name}
    if isinstance(x, device):
        return {"device": str(x)}
    if kind in (list, tuple, Size, set, frozenset):
        return {kind.__name__: [_encode(y, parts) for y in x]}
    if kind in (dict, OrderedDict, Counter):
        pairs = [[_encode(k, parts), _encode(v, parts)] for k, v in x.items()]
        return {kind.__name__: pairs}
    raise TypeError(
        f"leafax.save cannot write a {kind.__name__}: it writes tensors, numbers, strings, dicts, "
        "lists, tuples and arrays of these. Save a state_dict() rather than the object"
    )


_PLAIN = "biufcSUmM"  # kinds of NumPy's dtypes whose bytes are the data, and whose names say all


_SEQUENCES: dict[str, Any] = {
    "list": list, "tuple": tuple, "Size": Size, "set": set, "frozenset": frozenset,
}  # fmt: skip

_MAPPINGS: dict[str, Any] = {
    "dict": dict, "OrderedDict": OrderedDict, "Counter": lambda pairs: Counter(dict(pairs)),
}  # fmt: skip


def _decode(x: Any, tensors: Loaded) -> Any:
    if "tensor" in x:
        return tensors.tensor(x)
    (kind, value), *_ = x.items()
    if kind == "array":
        return tensors.array(*value)
    if kind == "scalar":
        return np.frombuffer(bytes.fromhex(value[1]), value[0])[0]
    if kind == "value":
        return value
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(float.fromhex(value[0]), float.fromhex(value[1]))
    if kind == "bytes":
        return bytes.fromhex(value)
    if kind == "dtype":
        return of(np.dtype(value) if value != "bfloat16" else jnp.dtype(value))
    if kind == "device":
        return device(value)
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](_decode(y, tensors) for y in value)
    pairs = [(_decode(k, tensors), _decode(v, tensors)) for k, v in value]
    return _MAPPINGS[kind](pairs)


def _moved(t: Any, where: Any) -> Any:
    """A tensor at the device that `map_location` says."""
    if callable(where):
        storage = where(t.untyped_storage(), "cpu")
        where = None if storage is None else storage.device
    elif isinstance(where, dict):
        where = where.get("cpu")
    if where is None:
        return t
    return t.to(where)
