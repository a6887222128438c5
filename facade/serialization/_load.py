"""`load`: files that PyTorch or leafax wrote."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import warnings
from typing import Any

import numpy as np

from .._core.dtypes import of
from . import _older
from ._archive import START, Reader
from ._kinds import StorageType
from ._locations import restore
from ._memory import ArrayMemory, FileMemory
from ._messages import UNSAFE, refusal
from ._names import allowed, find, is_torch
from ._safe import trusted
from ._stream import Stream
from ._weights_only import WeightsOnly, names_in

_TRUE = ("1", "y", "yes", "true")


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *,
    weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what PyTorch's `torch.save` or `leafax.save` wrote.

    Args:
      f: a path, or a binary file that can seek.
      map_location: a device for all tensors, a dict from devices in the file to others, or a
        function that takes a storage and the name of its device and returns a storage or None.
      pickle_module: with `weights_only=False`, the module whose `Unpickler` reads the file.
      weights_only: read tensors and plain containers only, which is the default. False runs
        whatever code the file asks for.
      mmap: taken for PyTorch's sake: what is loaded is read.
      pickle_load_args: with `weights_only=False`, arguments of the unpickler.

    Raises:
      UnpicklingError: the file asks for what a weights-only load does not allow.
      RuntimeError: it is no checkpoint, or damaged.

    >>> import io, leafax
    >>> file = io.BytesIO()
    >>> leafax.save([leafax.arange(3), "x"], file)
    >>> _ = file.seek(0)
    >>> leafax.load(file)
    [tensor([0, 1, 2]), 'x']
    """
    weights_only = _restricted(weights_only, pickle_module)
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    pickle_load_args.setdefault("encoding", "utf-8")
    with _opened(f) as file:
        return _read(
            file, f, map_location, None if weights_only else pickle_module or pickle, mmap,
            pickle_load_args,
        )  # fmt: skip


def _restricted(weights_only: bool | None, pickle_module: Any) -> bool:
    """Tell whether the load is weights-only, by argument and environment."""
    given = weights_only is not None
    result = bool(weights_only) if given else pickle_module is None
    force, not_force = (
        os.getenv(name, "0").lower() in _TRUE
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if force and not_force:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if force:
        result = True
    elif not_force and not given:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        result = False
    if result and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return result


@contextlib.contextmanager
def _opened(f: Any) -> Any:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        if "seek" in str(error) or "tell" in str(error):
            raise type(error)(
                f"{error}. You can only torch.load from a file that is seekable. Please pre-load "
                "the data into a buffer like io.BytesIO and try to load from it instead."
            ) from None
        raise
    yield f


def _starts_with(file: Any, start: bytes, at: int = 0) -> bool:
    here = file.tell()
    file.seek(at, 1)
    found = file.read(len(start))
    file.seek(here)
    return bool(found == start)


def _read(file: Any, f: Any, where: Any, module: Any, mmap: Any, options: dict[str, Any]) -> Any:
    def tensors(array: np.ndarray, kind: StorageType, location: str) -> FileMemory:
        memory = FileMemory(array, of(kind.np))
        restore(memory, location, where)
        return memory

    if _starts_with(file, START):
        archive = Reader(file)
        if _older.STRUCTURE in archive.names:
            return _older.read(archive, where)
        if archive.has("constants.pkl"):
            raise RuntimeError(
                "Cannot use ``weights_only=True`` with TorchScript archives passed to "
                "``torch.load``. " + UNSAFE
                if module is None
                else "the file is a TorchScript archive, which leafax cannot run"
            )
        if mmap and not isinstance(f, (str, os.PathLike)):
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _unpickled(_Zipped(archive), tensors, module, options)
    if mmap:
        name = f"{f}, " if isinstance(f, str) else ""
        raise RuntimeError(
            f"mmap can only be used with files saved with `torch.save({name}"
            "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
            "option in order to use mmap."
        )
    if _starts_with(file, b"ustar", 257):
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. " + UNSAFE
            if module is None
            else "leafax does not read files in the legacy .tar format"
        )
    return _unpickled(_Streamed(file), tensors, module, options)


class _Zipped:
    """The pickle and the memories of an archive."""

    def __init__(self, archive: Reader) -> None:
        self.memory = archive.memory
        self._archive = archive

    def open(self, load: Any) -> Any:
        """Return the pickle as a file."""
        return io.BytesIO(self._archive.record("data.pkl"))


class _Streamed:
    """The pickle and the memories of a file of the legacy format."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def open(self, load: Any) -> Any:
        """Return the file at its pickle."""
        stream = Stream(self._file, load)
        self.memory = stream.memory
        return self._file


def _unpickled(source: Any, make: Any, module: Any, options: dict[str, Any]) -> Any:
    """Return the object of a file, whose memories `make` takes."""
    if module is not None:
        return _reader(_trusting(module.Unpickler), source, make, options)
    try:
        return _reader(WeightsOnly, source, make, options)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(refusal(str(error))) from None


def _trusting(base: Any) -> Any:
    """Return an unpickler that finds PyTorch's names here and all others where they are."""

    class Trusting(base):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) == ("torch.storage", "_load_from_bytes"):
                return _load_from_bytes
            return find(module, name) if is_torch(module) else super().find_class(module, name)

    return Trusting


def _reader(base: Any, source: Any, make: Any, options: dict[str, Any]) -> Any:
    known: dict[Any, Any] = {}

    class Unpickler(base):  # type: ignore[misc]
        def persistent_load(self, told: Any) -> Any:
            """Return the memory, or class, that a file refers to."""
            if not isinstance(told, tuple):
                raise AssertionError(f"saved_id must be a tuple, got {type(told).__name__}")
            match told:
                case ("module" | b"module", found, *_):
                    return found
                case ("storage" | b"storage", StorageType() as kind, key, location, int(numel), *_):
                    if key not in known:
                        place = location.decode("ascii") if type(location) is bytes else location
                        known[key] = make(source.memory(key, kind.np, numel), kind, place)
                    return known[key]
            raise RuntimeError(f"Unknown saved id type: {told[0] if told else told}")

    def load_one(file: Any) -> Any:
        return base(file, **options).load()

    return Unpickler(source.open(load_one), **options).load()


def read_arrays(f: Any) -> Any:
    """Read a checkpoint of PyTorch as arrays of NumPy, running none of its code.

    Args:
      f: a path, or a binary file that can seek.

    Returns:
      What was saved, with an array for each tensor: of the shape, dtype and strides saved;
      bfloat16 and floats of 8 bits are those of `ml_dtypes`. Tensors that shared memory share it.

    Raises:
      UnpicklingError: the file asks for what a weights-only load does not allow.
      RuntimeError: it is no checkpoint, or damaged.

    >>> import io, leafax
    >>> file = io.BytesIO()
    >>> leafax.save({"w": leafax.arange(3)}, file)
    >>> _ = file.seek(0)
    >>> leafax.serialization.read_arrays(file)
    {'w': array([0, 1, 2])}
    """

    def arrays(array: np.ndarray, kind: StorageType, location: str) -> ArrayMemory:
        return ArrayMemory(array)

    with _opened(f) as file:
        source: Any = _Zipped(Reader(file)) if _starts_with(file, START) else _Streamed(file)
        return _unpickled(source, arrays, None, {"encoding": "utf-8"})


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the full names of what a file asks for that a weights-only load does not allow.

    Raises:
      ValueError: the file is no zip archive of `save`.
    """
    with _opened(f) as file:
        if not _starts_with(file, START):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = Reader(file)
        if archive.has("constants.pkl"):
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript "
                "checkpoint"
            )
        names = names_in(io.BytesIO(archive.record("data.pkl")))
    return list(names - set(allowed()) - set(trusted()))


def _load_from_bytes(data: bytes) -> Any:
    return load(io.BytesIO(data), weights_only=False)
