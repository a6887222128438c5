"""NumPy data on its way to the device.

A batch is used by one program and then dropped, and JAX puts the NumPy arguments of a program on
the device while it dispatches. So a tensor made of NumPy data holds a copy of it on the host;
its first program takes that copy as it is, and only a tensor that is used again, or looked at,
gets an array on the device. That makes `from_numpy` four times as quick as a transfer of its own.
What was computed in the call (`from_numpy(x / 255)`) is not even copied: nobody else holds it.
"""

from __future__ import annotations

import math
from collections import deque
from sys import getrefcount
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.confined import is_confined, refuse_xla

from .locks import sharing

_ALIGNED = 64


def to_device(array: Any) -> Any:
    """Copy a NumPy array to the default device, with its dtype kept."""
    if is_confined():
        return np.array(array, order="C")
    with jax.enable_x64(True):
        return jax.device_put(np.array(array))  # `jnp.array` compiles a program for each shape


def snapshot(array: np.ndarray) -> np.ndarray:
    """Copy an array, for a tensor's `_array` that nobody else writes to."""
    if array.nbytes < 4096:
        return np.array(array, order="C")
    out = room(array.shape, array.dtype)
    out[...] = array
    return out


def room(shape: tuple[int, ...], dtype: Any, largest: int = 4 << 20) -> np.ndarray:
    """Return an array to be filled, which nobody else writes to.

    It begins at a multiple of 64 bytes: such an array XLA takes on a CPU without another copy.

    Args:
      largest: bytes of an array whose memory is kept for the next of its size.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < 4096:
        return np.empty(shape, dtype)
    rooms = None
    if nbytes <= largest:
        rooms = _rooms.get(nbytes)
        if rooms is None:
            rooms = _rooms_for(nbytes)
    found = (_free(rooms) if rooms else None) or Room(nbytes)
    out: np.ndarray = np.ndarray(shape, dtype, found.memory, found.begin)
    if rooms is not None:
        rooms.append(found)  # of several that are in use the oldest is forgotten
    return out


class Room:
    """Memory of one snapshot, kept for the next: batches are of one size, and new memory is slow.

    It is a `bytearray` because a view of a NumPy view refers to the array that has its memory
    from something else than NumPy: so whoever sees this memory holds the array made of it, which
    holds the bytearray, and the references to that one tell whether it is free.

    Attributes:
      memory: of the size that was asked for and a little more.
      begin: where in it there is a multiple of 64 bytes.
    """

    __slots__ = ("begin", "memory")

    def __init__(self, size: int) -> None:
        self.memory = bytearray(size + _ALIGNED)
        self.begin = -np.frombuffer(self.memory, np.uint8).ctypes.data % _ALIGNED


def _free(rooms: deque[Room]) -> Room | None:
    """Take out the oldest of the rooms, if nobody uses it."""
    try:
        room = rooms.popleft()  # so that no other thread takes it
    except IndexError:
        return None
    if getrefcount(room.memory) == _FREE:
        return room
    rooms.append(room)
    return None


def _references_to(room: Room) -> int:
    return getrefcount(room.memory)


#: References to the memory of a room that nobody uses, as `_free` counts them.
_FREE = _references_to(Room(0))
_rooms: dict[int, deque[Room]] = {}  # by size in bytes
LARGEST_BATCH = 64 << 20  # bytes of what a loader has room for again and again
_SIZES = 4  # whose memory is kept, three of each


def _rooms_for(size: int) -> deque[Room]:
    if len(_rooms) >= _SIZES:
        _rooms.clear()  # those in use come back
    rooms: deque[Room] = deque(maxlen=3)
    return _rooms.setdefault(size, rooms)


def _references(x: Any) -> int:
    return getrefcount(x)


def _references_of_a_variable() -> int:
    x = np.empty(0)
    return _references(x)


#: How many references a function sees to an argument that nobody else holds; 0 if it cannot tell.
TEMPORARY = _references(np.empty(0))
if TEMPORARY >= _references_of_a_variable():
    TEMPORARY = 0


def is_own(array: np.ndarray) -> bool:
    """Return whether an array owns its memory, so that only its holders can write to it."""
    return array.base is None and array.flags.owndata and array.flags.c_contiguous


def placed(t: Any) -> Any:
    """Return the array of `t` on the device."""
    array = t._array
    if type(array) is np.ndarray:
        on_device = to_device(array)
        with sharing:
            if t._array is array:  # no other thread wrote to it
                t._array = on_device
        return on_device
    return array


failures = [0]  # how many computations were found to have failed


def wait(array: Any) -> None:
    """Wait until a JAX array is there, or raise why it is not."""
    if is_confined():
        _check_there(array)
    try:
        array.block_until_ready()
    except RuntimeError:
        failures[0] += 1
        raise


def _check_there(array: Any) -> None:
    """Refuse to wait in a process where nobody computes, and to copy from another device."""
    if any(device.platform != "cpu" for device in array.devices()):
        refuse_xla("a tensor that is not in the host's memory")
    if not array.is_ready():
        refuse_xla("a tensor that was still being computed when this process began")


def on_host(array: Any) -> np.ndarray:
    """Return a JAX array as one of NumPy, on the same memory where possible.

    It waits for the computation: asked for the memory of what failed, XLA ends the process.
    """
    if type(array) is not np.ndarray:
        wait(array)
    return np.asarray(array)


def raw(array: Any) -> bytes:
    """Return the elements of a JAX or NumPy array as they lie in memory.

    The buffer protocol is what a loop that reads its loss at every step pays for: a third of what
    `np.asarray` takes when the step's computation has just swept the caches.
    """
    if type(array) is not np.ndarray:
        wait(array)
    try:
        return memoryview(array).tobytes()
    except BufferError:  # not on the host, or of a dtype that Python has no name for
        return np.asarray(array).tobytes()


def entering(t: Any) -> Any:
    """Return the NumPy array of `t` for its first program, and later one on the device.

    A snapshot that a program took is marked by being read-only.
    """
    array: np.ndarray = t._array
    if not array.flags.writeable:
        return placed(t)
    array.flags.writeable = False
    return array
