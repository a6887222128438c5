"""PyTorch's zip archives: `data.pkl`, and the bytes of each memory as a record `data/<key>`."""

from __future__ import annotations

import sys
import uuid
import zipfile
from typing import Any

import numpy as np

from .._core.host_transfer import room
from ._options import LoadEndianness, get_default_load_endianness

START = b"PK\x03\x04"
_ALIGNMENT = 64
_HEADER = 30  # bytes before a record's name
_LARGE = (1 << 31) - 1  # bytes from which `zipfile` adds sizes of 64 bits
_CHUNK = 1 << 24


class Writer:
    """Writes an archive that PyTorch reads, records beginning at multiples of 64 bytes."""

    def __init__(self, file: Any, root: str) -> None:
        self._zip, self._root = zipfile.ZipFile(file, "w"), root

    def write(self, name: str, data: Any) -> None:
        """Add a record."""
        info = zipfile.ZipInfo(f"{self._root}/{name}", (1980, 1, 1, 0, 0, 0))
        data = memoryview(data).cast("B")
        assert self._zip.fp is not None
        begin = self._zip.fp.tell() + _HEADER + len(info.filename.encode())
        begin += 4 + (20 if data.nbytes * 1.05 > _LARGE else 0)
        info.extra = b"FB" + (-begin % _ALIGNMENT).to_bytes(2, "little")
        info.extra += b"Z" * (-begin % _ALIGNMENT)
        info.file_size = data.nbytes
        with self._zip.open(info, "w") as record:
            for k in range(0, data.nbytes, _CHUNK):
                record.write(data[k : k + _CHUNK])

    def finish(self) -> None:
        """Write what every archive ends with."""
        self.write("version", b"3\n")
        self.write(".data/serialization_id", str(uuid.uuid4().int)[:40].zfill(40).encode())
        self._zip.close()


class Reader:
    """The records of an archive that PyTorch or leafax wrote.

    Raises:
      RuntimeError: it is damaged, or no checkpoint.
    """

    def __init__(self, file: Any) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory"
            ) from error
        self.names = self._zip.namelist()
        found = [n for n in self.names if n.split("/")[1:] == ["data.pkl"]]
        self._root = found[0].removesuffix("data.pkl") if found else ""
        self._swap = False
        if found:
            self._swap = self._order() != sys.byteorder

    def has(self, name: str) -> bool:
        """Tell whether the archive has a record of this name."""
        return f"{self._root}{name}" in self.names

    def read(self, name: str) -> bytes:
        """Return the bytes of a member that lies in no folder."""
        return self._zip.read(name)

    def record(self, name: str) -> bytes:
        """Return the bytes of a record."""
        if not self.has(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        try:
            return self._zip.read(f"{self._root}{name}")
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {error}") from None

    def _order(self) -> str:
        if self.has("byteorder"):
            order = self.record("byteorder").decode()
            if order not in ("little", "big"):
                raise ValueError(f"Unknown endianness type: {order}")
            return order
        default = get_default_load_endianness()
        if default is LoadEndianness.NATIVE:
            return sys.byteorder
        return "big" if default is LoadEndianness.BIG else "little"

    def memory(self, key: str, kind: np.dtype[Any], numel: int) -> np.ndarray:
        """Return the elements of a memory.

        Raises:
          RuntimeError: it has not so many bytes.
        """
        name, nbytes = f"data/{key}", numel * kind.itemsize
        if not self.has(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        info = self._zip.getinfo(f"{self._root}{name}")
        if info.file_size < nbytes:
            raise RuntimeError(
                f"storage {key} has wrong byte size: expected {nbytes} got {info.file_size}"
            )
        out = room((numel,), kind)
        try:
            with self._zip.open(info) as record:
                read_into(record, out)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {error}") from None
        return out.byteswap() if self._swap else out


def read_into(file: Any, out: np.ndarray) -> None:
    """Fill an array with the bytes that come next.

    Raises:
      RuntimeError: there are not so many.
    """
    view = out.view(np.uint8).data
    done = 0
    while done < view.nbytes:
        chunk = file.read(min(_CHUNK, view.nbytes - done))
        if not chunk:
            raise RuntimeError(
                f"unexpected EOF, expected {view.nbytes - done} more bytes. The file might be "
                "corrupted."
            )
        view[done : done + len(chunk)] = chunk
        done += len(chunk)
