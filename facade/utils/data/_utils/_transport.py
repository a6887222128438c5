"""Objects on their way between processes, large arrays in memory that both see.

That memory is a file without a name, whose descriptor goes through the socket: whichever process
dies, the kernel frees it. The process that loads maps it and takes it as it is.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ...._enter import from_array
from ...._host_data import data_of
from ...._tensor import Tensor

_INLINE = 16 << 10  # bytes that go through the socket themselves
_ALIGNED = 64  # where an array begins that XLA takes without a copy
_HEAD, _LENGTH = struct.Struct("<II"), struct.Struct("<Q")
_SHARES = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")
_REDUCERS = ForkingPickler(io.BytesIO()).dispatch_table


class _Pickler(pickle.Pickler):
    """Leaves the memory of arrays out, and that of tensors, which need no program then."""

    def __init__(self, file: Any, buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
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


def packed(x: Any, shared: bool) -> tuple[bytes, list[Any], int | None]:
    """Pickle an object.

    Args:
      shared: large ones go in a file of their own.

    Returns:
      The head of the message, what follows it, and the descriptor of the file if there is one.
    """
    file, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    _Pickler(file, buffers).dump(x)
    parts: list[Any] = [file.getbuffer(), *[buffer.raw() for buffer in buffers]]
    lengths = [len(part) for part in parts]
    in_file = shared and _SHARES and sum(lengths) > _INLINE
    head = _HEAD.pack(len(parts), in_file) + b"".join(map(_LENGTH.pack, lengths))
    if not in_file:
        return head, parts, None
    fd = os.memfd_create("leafax-batch")
    try:
        places, size = _places(lengths)
        os.ftruncate(fd, size)
        for part, place in zip(parts, places, strict=True):
            while len(part):
                written = os.pwrite(fd, part, place)
                part, place = part[written:], place + written
    except BaseException:
        os.close(fd)
        raise
    return head, [], fd


def _places(lengths: Sequence[int]) -> tuple[list[int], int]:
    """Where the parts begin in a file, and its size."""
    places, end = [], 0
    for length in lengths:
        places.append(end)
        end = -(-(end + length) // _ALIGNED) * _ALIGNED
    return places, end


class Incoming:
    """Messages that are read as their bytes come."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._fds: list[int] = []

    def add(self, data: bytes, fds: Sequence[int]) -> None:
        """Take what the socket gave."""
        self._data += data
        self._fds += fds

    def next(self) -> tuple[Any] | None:
        """The next object, alone in a tuple; None if it is not there yet."""
        data = self._data
        if len(data) < _HEAD.size:
            return None
        count, in_file = _HEAD.unpack_from(data)
        begin = _HEAD.size + count * _LENGTH.size
        if len(data) < begin:
            return None
        lengths = [
            _LENGTH.unpack_from(data, _HEAD.size + k * _LENGTH.size)[0] for k in range(count)
        ]
        if in_file:
            del data[:begin]
            places, size = _places(lengths)
            memory: Any = _mapped(self._fds.pop(0), size)
        else:
            end = begin + sum(lengths)
            if len(data) < end:
                return None
            memory = memoryview(data[begin:end])  # a copy, which nobody else writes to
            del data[:end]
            places = [sum(lengths[:k]) for k in range(count)]
        views = [memory[at : at + length] for at, length in zip(places, lengths, strict=True)]
        return (pickle.loads(views[0], buffers=views[1:]),)

    def close(self) -> None:
        """Let go of the files of messages that nobody read."""
        while self._fds:
            os.close(self._fds.pop())


def _mapped(fd: int, size: int) -> memoryview:
    try:
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        return memoryview(mmap.mmap(fd, size, flags=flags))
    finally:
        os.close(fd)
