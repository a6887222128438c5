"""Tensors from Python data, NumPy arrays and JAX arrays."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np

from leafax.functional.program.dtypes import default_float, scalar_name

from ..._core.dtypes import as_dtype, of
from ..._core.dtypes import dtype as dtype_class
from ..._core.handle import Handle
from ..._core.host_transfer import snapshot
from ..._core.python_data import read
from ..._core.warn_once import warn_once
from ..._runtime.placing import as_spread
from .dlpack import from_dlpack, frombuffer
from .from_arrays import (
    as_leaf,
    check_array,
    finish,
    lay_out_as_array,
    numpy_dtype,
    warn_of_readonly,
    wrap,
)


def _numpy(data: Any, dtype: Any) -> np.ndarray:
    """Turn Python data into an array with PyTorch's default dtypes."""
    want = None if dtype is None else numpy_dtype(dtype, "tensor")
    if isinstance(data, (list, tuple)):
        return read(data, want)
    if not hasattr(data, "__array__"):
        if not hasattr(data, "__dlpack__"):
            return read(data, want)
        data = from_dlpack(data).jax()
    if want is not None and isinstance(data, (np.number, np.bool_)):
        return read(data, want)  # a number, which must be one of the dtype's kind
    array = np.asarray(data)
    check_array(array)
    return array if want is None or array.dtype == want else array.astype(want)


def tensor(
    data: Any,
    *,
    dtype: dtype_class | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Return a new leaf with a copy of `data`.

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
        out = lay_out_as_array(data, out)
    return finish(out, requires_grad, device)


def copied(data: Any, dtype: Any, device: Any, requires_grad: bool, said: str) -> Any:
    """Return a new leaf with the values of a tensor, with a word on what the caller meant.

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


def as_tensor(data: Any, *, dtype: dtype_class | None = None, device: Any = None) -> Any:
    """Turn `data` into a tensor: itself if it is one, JAX's array as it is, else a copy."""
    if isinstance(data, Handle):
        out: Any = data
    elif isinstance(data, jax.Array):
        out = wrap(as_spread(data))
    else:
        if isinstance(data, np.ndarray):
            warn_of_readonly(data)
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None and out.dtype is not dtype:
        out = out.to(dtype)
    return out if device is None else out.to(device)


def asarray(
    obj: Any, *, dtype: dtype_class | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Any:  # fmt: skip
    """Turn data into a tensor, with a say in copies and in whether gradients reach it.

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
        obj = from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        obj = frombuffer(obj, dtype=dtype or of(default_float()))
    if hasattr(obj, "untyped"):  # storages, which are made of tensors
        obj = obj.whole(dtype or of(default_float())).data
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
    return as_leaf(out)
