"""Objects on their way between processes, large ones in memory that both see.

That memory is files without names, whose descriptors go through the socket once: whichever process
dies, the kernel frees them. A file is written to again when the other process has read it, and what
is read is copied into memory that batches before had: new pages cost more than both copies.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ...._core.host_transfer import LARGEST_BATCH, room
from ...._storage.host_arrays import data_of
from ...._tensor.tensor import Tensor
from ...._tracing.inputs import from_array

_INLINE = 16 << 10  # bytes of a pickle that go through the socket themselves
_APART = 4 << 10  # bytes of an array that is not copied into the pickle
_MOST = 64  # files of one end
_BYTES = np.dtype(np.uint8)
_HEAD, _LENGTH = struct.Struct("<IiQ"), struct.Struct("<Q")  # of _HEAD: parts, file, files read
_SHARES = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")
_REDUCERS = ForkingPickler(io.BytesIO()).dispatch_table


class _Pickler(pickle.Pickler):
    """Takes the memory of tensors as it is: they need no program then."""

    def __init__(self, file: Any, buffer_callback: Any) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffer_callback)
        self.dispatch_table = _REDUCERS

    def reducer_override(self, x: Any) -> Any:
        if type(x) is not Tensor:
            return NotImplemented
        if x.requires_grad and not x.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
                "autograd does not support crossing process boundaries.  If you just want to "
                "transfer the data, call detach() on the tensor before serializing (e.g., putting "
                "it on the queue)."
            )
        array = data_of(x)
        if array is None or array.dtype.kind not in "biufc":
            return NotImplemented
        return _arrived, (np.asarray(array, order="C"), bool(x.requires_grad))


def _arrived(array: np.ndarray, requires_grad: bool) -> Any:
    return from_array(array, requires_grad=requires_grad)


def _pickled(x: Any, apart: bool) -> list[memoryview]:
    """Pickle an object, followed by the memory of its large arrays if that goes apart."""
    file, parts = io.BytesIO(), list[memoryview]()

    def in_pickle(buffer: pickle.PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes < _APART:
            return True
        parts.append(memory)
        return False

    _Pickler(file, in_pickle if apart else None).dump(x)
    return [file.getbuffer(), *parts]


class Outgoing:
    """Makes messages of objects, and has the files that large ones are written to."""

    def __init__(self) -> None:
        self._fds: list[int] = []
        self._last: list[int] = []  # which message a file had last
        self._written = 0  # messages in files

    def packed(self, x: Any, shared: bool, here: int, there: int) -> tuple[bytes, int | None]:
        """Make a message of an object.

        Args:
          shared: if it is large it is written to a file.
          here: how many messages in files were read by this end, which the other is told.
          there: how many of ours the other end has read.

        Returns:
          The message, and the descriptor of its file if the other end does not have it yet.
        """
        place = self._free(there) if shared and _SHARES else -1
        parts = _pickled(x, place >= 0)
        if place < 0 or len(parts) == 1 and len(parts[0]) <= _INLINE:
            alone = _HEAD.pack(1, -1, here), _LENGTH.pack(len(parts[0]))
            return b"".join([*alone, parts[0]]), None
        is_new = place == len(self._fds)
        if is_new:
            self._fds.append(os.memfd_create("leafax-batch"))
            self._last.append(0)
        self._written += 1
        self._last[place] = self._written
        fd, at = self._fds[place], 0
        lengths = [_LENGTH.pack(len(part)) for part in parts]
        for part in parts:
            left = memoryview(part)
            while len(left):
                written = os.pwrite(fd, left, at)
                left, at = left[written:], at + written
        head = _HEAD.pack(len(parts), place, here)
        return b"".join([head, *lengths]), fd if is_new else None

    def _free(self, there: int) -> int:
        """The number of a file that can be written to, maybe of a new one; -1 if there is none."""
        for place, last in enumerate(self._last):
            if last <= there:
                return place
        return len(self._fds) if len(self._fds) < _MOST else -1

    def close(self) -> None:
        """Close the files."""
        while self._fds:
            os.close(self._fds.pop())


class Incoming:
    """Messages that are read as their bytes come.

    Attributes:
      here: how many messages in files were read.
      there: how many the other end has read of ours, as far as it told.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._fds: list[int] = []
        self.here = self.there = 0

    def add(self, data: bytes, fds: Sequence[int]) -> None:
        """Take what the socket gave."""
        self._data += data
        self._fds += fds

    def next(self) -> tuple[Any] | None:
        """Return the next object, alone in a tuple; None if it is not there yet."""
        data = self._data
        if len(data) < _HEAD.size:
            return None
        count, place, there = _HEAD.unpack_from(data)
        begin = _HEAD.size + count * _LENGTH.size
        if len(data) < begin:
            return None
        lengths = [n for (n,) in _LENGTH.iter_unpack(data[_HEAD.size : begin])]
        if place < 0:
            if len(data) < begin + lengths[0]:
                return None
            parts: list[Any] = [data[begin : begin + lengths[0]]]
            del data[: begin + lengths[0]]
        else:
            del data[:begin]
            parts = _read(self._fds[place], lengths)
            self.here += 1
        self.there = there
        return (pickle.loads(parts[0], buffers=parts[1:]),)

    def close(self) -> None:
        """Close the files."""
        while self._fds:
            os.close(self._fds.pop())


def _read(fd: int, lengths: list[int]) -> list[Any]:
    parts, at = list[Any](), 0
    for length in lengths:
        part: Any = room((length,), _BYTES, LARGEST_BATCH) if parts else bytearray(length)
        left = memoryview(part)
        while len(left):
            count = os.preadv(fd, [left], at)
            if not count:
                raise EOFError
            left, at = left[count:], at + count
        parts.append(part)
    return parts
