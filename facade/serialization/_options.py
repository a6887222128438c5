"""Settings of PyTorch's `torch.serialization`: byte order, checksums, mapped files."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from mmap import MAP_PRIVATE, MAP_SHARED
from typing import IO, Any, TypeAlias

DEFAULT_PROTOCOL = 2  # of pickles
# Names for annotations, as PyTorch's file has them.
FILE_LIKE: TypeAlias = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | Any | str | dict[str, str] | None


class LoadEndianness(Enum):
    """The byte order to assume for a file that does not tell its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    endianness: LoadEndianness | None = None
    mmap_flags: int = MAP_PRIVATE


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not tell it; None stands for little-endian."""
    return _Options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the byte order of files that do not tell it."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Options.endianness = endianness


def get_crc32_options() -> bool:
    """Return True: `save` always writes the checksums that zip archives have."""
    return True


def set_crc32_options(compute_crc32: bool) -> None:
    """Accept that checksums are computed, which `save` does.

    Raises:
      NotImplementedError: they are to be left out.
    """
    if not compute_crc32:
        raise NotImplementedError("leafax.save always writes the checksums of zip archives")


def get_default_mmap_options() -> int:
    """Return the flags that were set for mapped files; leafax reads what it loads."""
    return _Options.mmap_flags


class set_default_mmap_options:
    """Set the flags of mapped files, for good or for a `with` block.

    They change nothing here: tensors hold arrays of JAX, so `load` reads what a file holds.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = _Options.mmap_flags
        _Options.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _Options.mmap_flags = self.prev
