"""Tensors from Python data, NumPy arrays and JAX arrays."""

from __future__ import annotations

import warnings
from sys import getrefcount
from typing import Any

import jax
import numpy as np

from leafax.functional.program.dtypes import default_float, scalar_name
from leafax.functional.program.transformation import transformation

from ..._core.dtypes import as_dtype, of
from ..._core.dtypes import dtype as dtype_class
from ..._core.handle import Handle
from ..._core.host_transfer import TEMPORARY, is_own, snapshot
from ..._core.python_data import name_of_type, read
from ..._core.trie import local
from ..._core.warn_once import warn_once
from ..._tracing.inputs import from_array


def _np(dtype: Any, function: str = "empty") -> np.dtype:
    return default_float() if dtype is None else as_dtype(function, dtype).np


def finish(out: Any, requires_grad: bool, device: Any) -> Any:
    """A new tensor where it was asked for, and as a leaf if it requires grad."""
    if transformation() is not None and out._trace is not None and out._trace.inside is None:
        array = out.jax()  # it was recorded outside, since nothing had been in there before
        out = from_array(array)
    if device is not None:
        out = out.to(device)
    return _leaf(out) if requires_grad else out


def wrap(array: Any, requires_grad: bool = False) -> Any:
    """A tensor on a JAX array, which it holds without a copy."""
    return from_array(array, requires_grad=requires_grad, inference=local.mode.inference)


def _numpy(data: Any, dtype: Any) -> np.ndarray:
    """Python data with PyTorch's default dtypes."""
    want = None if dtype is None else _np(dtype, "tensor")
    if isinstance(data, (list, tuple)):
        return read(data, want)
    if not hasattr(data, "__array__"):
        if not hasattr(data, "__dlpack__"):
            return read(data, want)
        from .dlpack import from_dlpack

        data = from_dlpack(data).jax()
    if want is not None and isinstance(data, (np.number, np.bool_)):
        return read(data, want)  # a number, which must be one of the dtype's kind
    array = np.asarray(data)
    _check_dtype(array)
    return array if want is None or array.dtype == want else array.astype(want)


def _check_dtype(array: np.ndarray) -> None:
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


def tensor(
    data: Any,
    *,
    dtype: dtype_class | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new leaf with a copy of `data`.

    Args:
      data: number, nested sequence, NumPy array, JAX array or tensor.
      dtype: element type; from the data if None (Python floats become the default dtype,
        ints int64).
      requires_grad: whether gradients are computed for it.

    >>> import leafax
    >>> leafax.tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if dtype is not None and not isinstance(dtype, dtype_class):
        dtype = as_dtype("tensor", dtype)
    if isinstance(data, Handle):
        return copied(data, dtype, device, requires_grad, "torch.tensor")
    array = _numpy(data, dtype)
    out = wrap(snapshot(array))
    if isinstance(data, np.ndarray):
        out = _laid(data, out)
    return finish(out, requires_grad, device)


def copied(data: Any, dtype: Any, device: Any, requires_grad: bool, said: str) -> Any:
    """A new leaf with the values of a tensor, with a word on what the caller meant.

    Args:
      said: what the warning calls the function.
    """
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach()"
        ".clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
        f"{said}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )
    out = data.detach().clone()
    out = out if dtype is None else out.to(dtype)
    return finish(out, requires_grad, device)


def _leaf(out: Any) -> Any:
    if out._v.dtype.kind in "biu":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return out._set_requires_grad(True)


def as_tensor(data: Any, *, dtype: dtype_class | None = None, device: Any = None) -> Any:
    """`data` as a tensor: itself if it is one, its array if that is JAX's, else a copy."""
    if isinstance(data, Handle):
        out: Any = data
    elif isinstance(data, jax.Array):
        out = wrap(data)
    else:
        if isinstance(data, np.ndarray):
            _warn_of_readonly(data)
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None and out.dtype is not dtype:
        out = out.to(dtype)
    return out if device is None else out.to(device)


def asarray(
    obj: Any, *, dtype: dtype_class | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Any:  # fmt: skip
    """`as_tensor` with a say in whether it is copied, and in whether gradients reach it.

    Args:
      copy: True for a copy, also of a tensor; False for an error where there must be one. What
        comes from Python or NumPy is copied in any case, see `from_numpy`.
      requires_grad: None keeps what a tensor has; False cuts it from its history.

    Raises:
      ValueError: if `copy=False` and `obj` is no tensor or array of that dtype.
      RuntimeError: if a tensor of integers would require grad, or `copy=False` for a NumPy scalar.
    """
    if requires_grad is None and isinstance(obj, Handle):
        requires_grad = bool(obj.requires_grad)  # type: ignore[attr-defined]
        if requires_grad:
            warn_once(
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad "
                "instead of False. Pass requires_grad=False explicitly to get the old behavior and "
                "silence this warning."
            )
    if type(obj).__name__ == "PyCapsule":
        from .dlpack import from_dlpack

        obj = from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        from .dlpack import frombuffer

        obj = frombuffer(obj, dtype=dtype or of(default_float()))
    aliasable = isinstance(obj, (Handle, jax.Array, np.ndarray))
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    if isinstance(obj, np.generic):  # cast, whatever its kind: to PyTorch it is an array here
        obj, aliasable = np.asarray(obj), True
    if copy is False and not aliasable:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    out = obj if isinstance(obj, Handle) else as_tensor(obj, dtype=None if aliasable else dtype)
    if copy is False and dtype is not None and out.dtype is not dtype:
        have, want = scalar_name(out._v.dtype), scalar_name(dtype.np)
        raise ValueError(f"can't alias tensor with dtype '{have}' into dtype '{want}'.")
    out = as_tensor(out, dtype=dtype, device=device)
    if out is obj and copy:
        out = out.clone()
    if not requires_grad:
        return out._set_requires_grad(False) if out.is_leaf else out.detach()
    return _leaf(out)


def from_numpy(array: np.ndarray) -> Any:
    """A tensor with the data of a NumPy array, copied to the device.

    PyTorch shares the memory; arrays of JAX are immutable, so here later writes to `array` are
    not seen.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {name_of_type(array)})")
    _check_dtype(array)
    _warn_of_readonly(array)
    if getrefcount(array) == TEMPORARY and is_own(array):
        return wrap(np.asarray(array))  # of a memmap, say, the array that it is
    return _laid(array, wrap(snapshot(array)))


def _warn_of_readonly(array: np.ndarray) -> None:
    """Warn as PyTorch does, where tensors share an array's memory; here they have their own."""
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor. This type of warning will be suppressed for the rest of this program."
        )


def _laid(array: np.ndarray, made: Any) -> Any:
    """Let a copy of an array lie in memory as the array does, if it does so without gaps."""
    if array.flags.c_contiguous or not array.size:
        return made
    order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))
    if not array.transpose(order).flags.c_contiguous:
        return made
    from .make_strided import lie

    return lie(made, tuple(step // array.itemsize for step in array.strides))
