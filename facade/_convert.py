"""`Tensor.to`: dtypes and devices."""

from __future__ import annotations

from typing import Any

import jax

from leafax.functional import TABLE

from ._cautions import drops_imaginary
from ._channels_last import is_in, strides_in
from ._dtype import as_dtype
from ._dtype import device as device_class
from ._dtype import dtype as dtype_class
from ._handle import Handle
from ._record import apply
from ._run import observe
from ._strides import layout

_BACKENDS = {"cuda": ("gpu", "cuda", "rocm"), "cpu": ("cpu",), "tpu": ("tpu",)}


def jax_device(where: device_class) -> Any:
    """The JAX device behind a PyTorch device."""
    for backend in _BACKENDS.get(where.type, (where.type,)):
        try:
            found = jax.local_devices(backend=backend)
        except RuntimeError:
            continue
        if (where.index or 0) < len(found):
            return found[where.index or 0]
    raise RuntimeError(f"no device of type {where} is available to JAX on this machine")


def copied_as(t: Any, dtype: Any, memory_format: Any = None) -> Any:
    """A copy of another dtype or in a memory format."""
    if memory_format is None:
        return apply(TABLE["_to_copy"], t, dtype)
    strides_in(t.shape, memory_format)  # or raise
    return apply(TABLE["_to_copy"], t, dtype, memory_format)


def to(t: Any, *args: Any, **kwargs: Any) -> Any:
    """`t.to(dtype)`, `t.to(device)`, `t.to(device, dtype)`, `t.to(other)`."""
    kwargs.pop("non_blocking", None)
    memory_format = kwargs.pop("memory_format", None)
    copy = kwargs.pop("copy", False)
    dtype, where = kwargs.pop("dtype", None), kwargs.pop("device", None)
    if "other" in kwargs:
        args = (kwargs.pop("other"), *args)
    for a in args:
        if isinstance(a, (dtype_class, type)):
            dtype = a
        elif isinstance(a, (str, device_class, int)) and not isinstance(a, bool):
            where = device_class("cuda", a) if isinstance(a, int) else device_class(a)
        elif isinstance(a, Handle):
            dtype = a.dtype  # type: ignore[attr-defined]
    if isinstance(where, (str, int)):
        where = device_class(where)
    out = t
    if where is not None and where.type != t.device.type:
        target = jax_device(where)
        if t._array is None and t._trace is None:
            observe(t, "to(device)")
        if not t.requires_grad:
            from ._enter import from_array

            out = from_array(jax.device_put(observe(t, "to(device)"), target))
        else:
            raise RuntimeError(
                "a tensor that requires grad cannot be moved inside a recorded program: move it "
                "first, then call requires_grad_()"
            )
    if isinstance(dtype, type):
        dtype = as_dtype("to", dtype)
    if dtype is not None and dtype.np != t._v.dtype:
        drops_imaginary(t._v.dtype, dtype.np, t._v.numel)
        return copied_as(out, dtype.np, memory_format)
    if memory_format is not None and (copy or not is_in(layout(out), memory_format)):
        return copied_as(out, t._v.dtype, memory_format)
    return out.clone() if copy and out is t else out
