"""`save`: files that PyTorch reads."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from typing import Any

from . import _stream
from ._archive import Writer
from ._options import DEFAULT_PROTOCOL
from ._pickler import dump


def save(
    obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write an object with tensors in it to a file that PyTorch's `torch.load` reads, too.

    Args:
      obj: a tensor, a `state_dict()`, an optimizer's, a module, or any object that can be pickled.
        Tensors that share memory share it when they are loaded.
      f: a path, or a binary file that can be written.
      pickle_module: `pickle`, or a module whose `Pickler` extends `pickle`'s in Python.
      pickle_protocol: `load` takes 2 without `weights_only=False`.

    Raises:
      RuntimeError: tensors of two dtypes lie in the same memory.

    >>> import io, leafax
    >>> file = io.BytesIO()
    >>> leafax.save({"step": 3, "w": leafax.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> leafax.load(file)
    {'step': 3, 'w': tensor([1., 1.])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    if not _use_new_zipfile_serialization:
        with _opened(f) as file:
            _save_stream(obj, file, pickle_module, pickle_protocol)
        return
    root = "archive"
    if is_path:
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.exists(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        root = os.path.splitext(os.path.basename(os.fspath(f)))[0] or root
    data = io.BytesIO()
    memories = dump(obj, data, pickle_module, pickle_protocol)
    with _opened(f) as file:
        writer = Writer(file, root)
        writer.write("data.pkl", data.getbuffer())
        if not _disable_byteorder_record:
            writer.write("byteorder", b"little")
        for key in memories:
            writer.write(f"data/{key}", memories.bytes_of(key))
        writer.finish()


@contextlib.contextmanager
def _opened(f: Any) -> Any:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            yield file
        return
    yield f
    if hasattr(f, "flush"):
        f.flush()


def _save_stream(obj: Any, file: Any, pickle_module: Any, protocol: int) -> None:
    def memories(obj: Any, file: Any) -> dict[str, Any]:
        found = dump(obj, file, pickle_module, protocol, stream=True)
        return {key: (found.numels[key], found.bytes_of(key)) for key in found}

    _stream.write(file, memories, obj, protocol)
