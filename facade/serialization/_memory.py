"""The memory that a file holds, and the tensors or arrays that lie in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leafax.functional.ops.shape.strides import contiguous_strides

from .._core.dtypes import device, of
from .._core.jax_devices import jax_device as _jax_device
from .._ops.creation.from_arrays import wrap
from .._ops.creation.storage_objects import TypedStorage, UntypedStorage
from .._ops.views.deepcopy import placed
from .._rules.strides.layouts import is_dense
from .._storage.lay_out import lay_out
from .._storage.write import written


def check_window(offset: Any, size: Any, stride: Any, kind: np.dtype[Any], nbytes: int) -> None:
    """Raise unless a tensor lies in memory of so many bytes: a file may tell anything."""
    if not (type(size) is tuple and type(stride) is tuple and len(size) == len(stride)):
        size, stride = tuple(size), tuple(stride)
    if not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)):
        raise RuntimeError(
            f"a tensor of the file has size {size}, strides {stride} and storage offset {offset}"
        )
    last = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    need = 0 if 0 in size else (offset + last + 1) * kind.itemsize
    if need > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
            f"itemsize {kind.itemsize} requiring a storage size of {need} are out of bounds for "
            f"storage of size {nbytes}"
        )


class ArrayMemory:
    """Memory of a file whose tensors become arrays of NumPy that share it."""

    def __init__(self, array: np.ndarray) -> None:
        self._bytes = array

    def make(self, kind: np.dtype[Any], offset: Any, size: Any, stride: Any) -> np.ndarray:
        """Return an array that lies in the memory as its tensor did."""
        flat = self._bytes
        check_window(offset, size, stride, kind, flat.nbytes)
        if 0 in size:
            return np.empty(size, kind)
        if flat.dtype != kind:
            flat = flat[: flat.nbytes // kind.itemsize * kind.itemsize].view(kind)
        steps = [s * kind.itemsize for s in stride]
        return np.lib.stride_tricks.as_strided(flat[offset:], size, steps)

    @property
    def kind(self) -> np.dtype[Any]:
        """Return the dtype of its elements."""
        return self._bytes.dtype


class FileMemory(TypedStorage):
    """Memory of a file whose tensors share it, as PyTorch's storages.

    A tensor that is all of it is made of the array that was read, without a view in between.
    """

    def __init__(self, array: np.ndarray, kind: Any) -> None:
        self._array, self._kind = array, kind
        self._made: Any = None
        self._where: device | None = None
        self.kind = kind.np

    @property
    def _tensor(self) -> Any:
        if self._made is None:
            self._made = self._put(self._array)
        return self._made

    @_tensor.setter
    def _tensor(self, t: Any) -> None:
        self._made = t

    def _put(self, array: np.ndarray) -> Any:
        made = written(wrap(array))
        return made if self._where is None else made.to(self._where)

    @property
    def dtype(self) -> Any:
        """Return the dtype of an element."""
        return self._kind

    def nbytes(self) -> int:
        """Return the number of its bytes."""
        return int(self._array.nbytes) if self._made is None else super().nbytes()

    def move(self, where: device) -> None:
        """Choose the device on which the tensors of this memory are made."""
        _jax_device(where)
        self._where = where

    def adopt(self, storage: UntypedStorage) -> None:
        """Place the tensors of this memory in the one that `map_location` returned."""
        self._made = storage._tensor

    def make(self, kind: np.dtype[Any], offset: Any, size: Any, stride: Any) -> Any:
        """Return a tensor that lies in the memory as it did when it was saved."""
        size, stride = tuple(size), tuple(stride)
        check_window(offset, size, stride, kind, self.nbytes())
        whole = self._made is None and offset == 0 and kind == self._array.dtype
        if whole and math.prod(size) == self._array.size and is_dense(size, stride):
            self._made = self._whole(size, stride)
            return self._made
        return placed(self._tensor, of(kind), offset, size, stride)

    def _whole(self, size: tuple[int, ...], stride: tuple[int, ...]) -> Any:
        if stride == contiguous_strides(size):
            return self._put(self._array.reshape(size))
        order = sorted(range(len(size)), key=lambda d: -stride[d])
        rows = self._array.reshape([size[d] for d in order])
        back = np.argsort(order)
        made = self._put(np.ascontiguousarray(rows.transpose(back)))
        return lay_out(made, stride)
