"""Tensors on arrays of NumPy and JAX, and how a new tensor is finished."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float
from leafax.functional.program.transformation import transformation

from ..._core.dtypes import as_dtype, of
from ..._core.host_transfer import TEMPORARY, is_own, snapshot
from ..._core.jax_devices import chosen
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._core.warn_once import warn_once
from ..._storage.lay_out import lay_out
from ..._tracing.inputs import from_array
from .to import as_device, on_device, put_beside


def numpy_dtype(dtype: Any, function: str = "empty") -> np.dtype:
    return default_float() if dtype is None else as_dtype(function, dtype).np


def finish(out: Any, requires_grad: bool, device: Any) -> Any:
    """Return a new tensor where it was asked for, and as a leaf if it requires grad."""
    if transformation() is not None and out._trace is not None and out._trace.inside is None:
        array = out.jax()  # it was recorded outside, since nothing had been in there before
        out = from_array(array)
    if device is not None or chosen.where is not None:
        out = on_device(out, chosen.where if device is None else as_device(device))
    return as_leaf(out) if requires_grad else out


def wrap(array: Any, requires_grad: bool = False) -> Any:
    """Return a tensor on a JAX array, which it holds without a copy."""
    return from_array(array, requires_grad=requires_grad, inference=local.mode.inference)


def as_leaf(out: Any) -> Any:
    if out._v.dtype.kind in "biu":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return out._set_requires_grad(True)


def from_numpy(array: np.ndarray) -> Any:
    """Return a tensor with the data of a NumPy array, copied to the device.

    PyTorch shares the memory; arrays of JAX are immutable, so here later writes to `array` are
    not seen.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {name_of_type(array)})")
    check_array(array)
    warn_of_readonly(array)
    if getrefcount(array) == TEMPORARY and is_own(array):
        return wrap(np.asarray(array))  # of a memmap, say, the array that it is
    return lay_out_as_array(array, wrap(snapshot(array)))


def check_array(array: np.ndarray) -> None:
    strides, size = array.strides, array.itemsize
    if not array.flags.c_contiguous and array.size and min(strides) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    for step in strides:
        if not step % size:
            continue
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy "
            "array to reallocate the memory."
        )
    dtype = array.dtype
    if not dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    try:
        of(dtype)
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype.type.__module__}."
            f"{array.dtype.type.__name__}. The only supported types are: float64, float32, "
            "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool."
        ) from None


def warn_of_readonly(array: np.ndarray) -> None:
    """Warn as PyTorch does, where tensors share an array's memory; here they have their own."""
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor. This type of warning will be suppressed for the rest of this program."
        )


def lay_out_as_array(array: np.ndarray, made: Any) -> Any:
    """Lay a copy of an array out in memory as the array is, if that has no gaps."""
    if array.flags.c_contiguous or not array.size:
        return made
    order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))
    if not array.transpose(order).flags.c_contiguous:
        return made
    return lay_out(made, tuple(step // array.itemsize for step in array.strides))


def from_numpy_beside(t: Any, data: np.ndarray) -> Any:
    """Make a tensor of NumPy's data on the device to which `t` is committed, if it is to one."""
    return put_beside(t, from_numpy(data))
