"""NumPy data on its way to the device.

A batch is used by one program and then dropped, and JAX puts the NumPy arguments of a program on
the device while it dispatches. So a tensor made of NumPy data holds a copy of it on the host;
its first program takes that copy as it is, and only a tensor that is used again, or looked at,
gets an array on the device. That makes `from_numpy` four times as quick as a transfer of its own.
What was computed in the call (`from_numpy(x / 255)`) is not even copied: nobody else holds it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from sys import getrefcount
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_ALIGNED = 64
_LARGEST = 1 << 24  # bytes of a snapshot whose memory is kept
_ROOMS, _SIZES = 3, 4  # a batch that waits, one that is computed with, one that is made


def to_device(array: Any) -> Any:
    """A NumPy array on the default device, copied, with its dtype kept."""
    with jax.enable_x64(True):
        return jnp.array(array)


def snapshot(array: np.ndarray) -> np.ndarray:
    """A copy that nobody else writes to; to be the `_array` of a tensor.

    It begins at a multiple of 64 bytes: such an array XLA takes on a CPU without another copy.
    """
    if array.nbytes < 4096:
        return np.array(array, order="C")
    out: np.ndarray = np.ndarray(array.shape, array.dtype, _rooms.take(array.nbytes))
    out[...] = array
    return out


class _Rooms(threading.local):
    """Memory for snapshots, used again once nobody holds what was there.

    To ask for memory and where it lies takes as long as to record forty ops, and a loop's batches
    are of one size. JAX holds what a program reads until that has run.
    """

    def __init__(self) -> None:
        self.by_size: OrderedDict[int, list[np.ndarray]] = OrderedDict()

    def take(self, nbytes: int) -> np.ndarray:
        rooms = self.by_size.setdefault(nbytes, [])
        for i in range(len(rooms)):
            if getrefcount(rooms[i]) == _LISTED:
                return rooms[i]
        whole = np.empty(nbytes + _ALIGNED, np.uint8)
        begin = -whole.__array_interface__["data"][0] % _ALIGNED
        room = whole[begin : begin + nbytes]
        if nbytes <= _LARGEST and len(rooms) < _ROOMS:
            rooms.append(room)
        self.by_size.move_to_end(nbytes)
        if len(self.by_size) > _SIZES:
            self.by_size.popitem(last=False)
        return room


_rooms = _Rooms()
_listed = [np.empty(0)]
_LISTED = getrefcount(_listed[0])  # of an array that only a list holds


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
    """Whether the array's memory is its own, so that only who holds the array can write to it."""
    return array.base is None and array.flags.owndata and array.flags.c_contiguous


def placed(t: Any) -> Any:
    """The array of `t` on the device."""
    if type(t._array) is np.ndarray:
        t._array = to_device(t._array)
    return t._array


def entering(t: Any) -> Any:
    """The NumPy array of `t` for the first program that takes it, later one on the device.

    A snapshot that a program took is marked by being read-only.
    """
    array: np.ndarray = t._array
    if not array.flags.writeable:
        return placed(t)
    array.flags.writeable = False
    return array
