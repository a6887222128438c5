"""PyTorch's format before 1.6: pickles one after another, and then the bytes of each memory.

The bytes come last, and which dtype they are of is only said in the pickle. So its memory is
looked for first, by an unpickler that makes blanks of whatever the pickle names.
"""

from __future__ import annotations

import pickle
import struct
import sys
from typing import Any

import numpy as np

from .._core.host_transfer import room
from ._archive import read_into
from ._kinds import TYPES, StorageType

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
_PYTHON: Any = pickle._Unpickler  # type: ignore[attr-defined]


class _Blank:
    """Stands for anything that a pickle makes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> _Blank:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    append = extend = add = __setstate__ = __call__


class _Memories(_PYTHON):  # type: ignore[misc]
    """Notes the memories of a pickle."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.found: dict[str, tuple[np.dtype[Any], int]] = {}

    def find_class(self, module: str, name: str) -> Any:
        return TYPES.get(name, _Blank)

    def persistent_load(self, told: Any) -> Any:
        match told:
            case ("storage" | b"storage", StorageType() as kind, key, _, int(numel), *_):
                self.found[key] = kind.np, numel
                return _Blank()
        return _Blank


class Stream:
    """A file of that format, whose pickle is next once it is made.

    Its memories are read when the first is asked for: a file that is refused is read no further.

    Args:
      load: reads one pickle of the file.

    Raises:
      RuntimeError: it is not such a file, or damaged.
    """

    def __init__(self, file: Any, load: Any) -> None:
        self._file = file
        if load(file) != MAGIC:
            raise RuntimeError("Invalid magic number; corrupt file?")
        version = load(file)
        if version != VERSION:
            raise RuntimeError(f"Invalid protocol version: {version}")
        load(file)
        self._load = load
        self._begin = file.tell()
        self._arrays: dict[str, np.ndarray] | None = None

    def _read(self) -> dict[str, np.ndarray]:
        file, arrays = self._file, {}
        scan = _Memories(file)
        scan.load()
        keys = self._load(file)
        here = file.tell()
        left = file.seek(0, 2) - here
        file.seek(here)
        for key in keys:
            if key not in scan.found:
                raise AssertionError(f"storage key {key!r} not found in deserialized_objects")
            kind, numel = scan.found[key]
            head = file.read(8)
            left -= len(head) + numel * kind.itemsize
            if len(head) < 8 or left < 0:
                raise RuntimeError(
                    f"unexpected EOF, expected {max(-left, 8 - len(head))} more bytes. The file "
                    "might be corrupted."
                )
            (told,) = struct.unpack("<q", head)
            if told != numel:
                sizes = f"{told * kind.itemsize}{numel * kind.itemsize}"
                raise RuntimeError(f"storage has wrong byte size: expected %ld got %ld{sizes}")
            arrays[key] = room((numel,), kind)
            read_into(file, arrays[key])
            if sys.byteorder == "big":
                arrays[key] = arrays[key].byteswap()
        return arrays

    def memory(self, key: str, kind: np.dtype[Any], numel: int) -> np.ndarray:
        """Return the elements of a memory."""
        if self._arrays is None:
            here = self._file.tell()
            self._file.seek(self._begin)
            self._arrays = self._read()
            self._file.seek(here)
        if key not in self._arrays:
            raise RuntimeError(f"the file does not hold its storage {key!r}")
        array = self._arrays[key]
        if array.dtype != kind or array.size != numel:
            raise RuntimeError(f"storage {key!r} is described in two ways")
        return array


def write(file: Any, dump: Any, obj: Any, protocol: int) -> None:
    """Write a file of that format.

    Args:
      dump: pickles `obj` into the file; returns the memories by key.
    """
    sizes = {"short": 2, "int": 4, "long": 4}
    told = {"protocol_version": VERSION, "little_endian": True, "type_sizes": sizes}
    for part in (MAGIC, VERSION, told):
        pickle.dump(part, file, protocol=protocol)
    memories = dump(obj, file)
    keys = sorted(memories)
    pickle.dump(keys, file, protocol=protocol)
    file.flush()
    for key in keys:
        numel, data = memories[key]
        file.write(struct.pack("<q", numel))
        file.write(data)
