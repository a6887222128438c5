"""Files that leafax wrote before it wrote PyTorch's format: data and JSON, which `load` reads."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.dtypes import Size, device, of
from .._core.trie import local
from .._dispatch.conj_neg_bits import _neg_view
from .._ops.creation.storage_objects import UntypedStorage
from .._ops.views.deepcopy import placed
from .._rules.strides.layouts import is_dense
from .._storage.lay_out import lay_out
from .._storage.write import written
from .._tracing.inputs import from_array
from ._locations import default_restore_location

STRUCTURE = "structure.json"
_FORMATS = ("leafax 2", "leafax 1")  # 1: each tensor in memory of its own, row by row


def read(archive: Any, map_location: Any) -> Any:
    """Return the object of a file.

    Raises:
      RuntimeError: the file is of a format that is not known.
    """
    header = json.loads(archive.read(STRUCTURE))
    if header.get("format") not in _FORMATS:
        raise RuntimeError(f"unknown file format {header.get('format')!r}")
    return _decode(header["object"], _Loaded(archive, header, map_location))


class _Loaded:
    """The tensors and arrays of a file, each made once.

    Args:
      header: the structure, which has the memories' dtypes and lengths.
    """

    def __init__(self, archive: Any, header: Any, map_location: Any) -> None:
        self._archive, self._where = archive, map_location
        self._memories = header.get("memories", [])
        self._flat: dict[int, Any] = {}
        self._made: dict[int, Any] = {}
        self._arrays: dict[int, np.ndarray] = {}

    def tensor(self, told: dict[str, Any]) -> Any:
        """Return the tensor that the structure tells of."""
        k = told["tensor"][0]
        if k not in self._made:
            self._made[k] = self._make(told)
        return self._made[k]

    def array(self, k: int, name: str, shape: list[int]) -> np.ndarray:
        """Return the array of NumPy that the structure tells of."""
        if k not in self._arrays:
            data = self._archive.read(f"array/{int(k)}")
            self._arrays[k] = np.frombuffer(data, name).reshape(shape).copy()
        return self._arrays[k]

    def _make(self, told: dict[str, Any]) -> Any:
        k, name, shape, needs = told["tensor"]
        strides = tuple(told["strides"]) if "strides" in told else None
        if "memory" in told:
            kind = of(jnp.dtype(name))
            out = placed(self._memory(told["memory"]), kind, told["offset"], tuple(shape), strides)
        else:
            out = self._read(f"data/{int(k)}", name, shape)
            if strides is not None and is_dense(tuple(shape), strides):
                out = lay_out(out, strides)
            if "lazy" in told:
                out = written((out.conj() if told["lazy"] == "conj" else _neg_view(out)).data)
            out = self._moved(out)
        return out.requires_grad_() if needs else out

    def _memory(self, place: int) -> Any:
        if place not in self._flat:
            name, length = self._memories[place]
            self._flat[place] = self._moved(self._read(f"memory/{int(place)}", name, [length]))
        return self._flat[place]

    def _read(self, member: str, name: str, shape: Any) -> Any:
        array = np.frombuffer(self._archive.read(member), jnp.dtype(name)).reshape(shape)
        with jax.enable_x64(True):
            return written(from_array(jnp.asarray(array), inference=local.mode.inference))

    def _moved(self, t: Any) -> Any:
        where = self._where
        if isinstance(where, dict):
            where = where.get("cpu")
        if where is None:
            return t
        if callable(where):
            found = where(UntypedStorage(t), "cpu")
            return t if found is None else t.to(found.device)
        default_restore_location(UntypedStorage(t), str(where))
        return t.to(where)


_SEQUENCES: dict[str, Any] = {
    "list": list, "tuple": tuple, "Size": Size, "set": set, "frozenset": frozenset,
}  # fmt: skip
_MAPPINGS: dict[str, Any] = {
    "dict": dict, "OrderedDict": OrderedDict, "Counter": lambda pairs: Counter(dict(pairs)),
}  # fmt: skip


def _decode(x: Any, tensors: _Loaded) -> Any:
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
