"""`Tensor.to`: dtypes and devices."""

from __future__ import annotations

from typing import Any

import jax

from leafax.functional.execution.memory import copy_to
from leafax.functional.program.meta import META, NO_DATA
from leafax.functional.program.op import TABLE
from leafax.functional.program.transformation import transformation

from ..._core.dtypes import as_dtype
from ..._core.dtypes import device as device_class
from ..._core.dtypes import dtype as dtype_class
from ..._core.handle import Handle
from ..._core.jax_devices import chosen, has_several, jax_device
from ..._core.memory_format import memory_format
from ..._core.trie import local
from ..._core.warn_once import drops_imaginary
from ..._dispatch.record import apply
from ..._rules.strides.channels_last import is_in, strides_in
from ..._signatures.overload_errors import describe_mismatch
from ..._storage.lay_out import lay_out_as
from ..._storage.strides import layout
from ..._storage.write import written_once
from ..._tracing.inputs import from_array


def copied_as(t: Any, dtype: Any, memory_format: Any = None, device: Any = None) -> Any:
    """Return a copy of another dtype, in a memory format or on another device.

    Args:
      device: of JAX, or `META`; None for the tensor's own.
    """
    if memory_format is not None:
        strides_in(t.shape, memory_format)  # or raise
    if device is not None:
        out = apply(TABLE["_to_copy"], t, dtype, memory_format, device)
    elif memory_format is None:
        out = apply(TABLE["_to_copy"], t, dtype)
    else:
        out = apply(TABLE["_to_copy"], t, dtype, memory_format)
    if t._v.inference and not local.mode.inference:  # PyTorch counts the copying, as in `clone`
        written_once(out)
    return out


def moved(t: Any, where: Any, dtype: Any = None) -> Any:
    """Return a tensor on a device, which it is committed to; itself if it is that already.

    What has a value and no history is copied at once, which does not wait for it. A copy of what is
    pending is recorded.

    Args:
      where: a `torch.device`.
      dtype: of NumPy, which a recorded copy has.

    Raises:
      NotImplementedError: the tensor has no data, as it is on the device `meta`.
      RuntimeError: there is no such device.
    """
    target, here = jax_device(where), t._v.device
    if here is META:
        if target is META:
            return t
        raise NotImplementedError(NO_DATA)
    if here is target or here is None and not has_several() and target is not META:
        return t
    array = None if t._shares or t._stale is not None else t._array
    recorded = t._tracked or target is META or local.vmap is not None or local.mode.dual
    if recorded or array is None or transformation() is not None or local.cuts.capture is not None:
        return copied_as(t, t._v.dtype if dtype is None else dtype, None, target)
    return _copied_at_once(t, array, target)


def _copied_at_once(t: Any, array: Any, target: Any) -> Any:
    """Return a copy of a tensor with this array on a device of JAX; nothing is recorded."""
    with jax.enable_x64(True):  # in memory of its own: what is held twice could not be donated
        out = from_array(copy_to(array, target), inference=t._v.inference)
    return out if t._v.strides is None else lay_out_as(t, out)


def device_like(t: Any, device: Any) -> Any:
    """Return the device of what is made like `t`: the one asked for, else that of `t`."""
    if device is not None or t._v.device is None and chosen.where is None:
        return device
    return t.device


def by_device(tensors: Any) -> list[list[Any]]:
    """Return lists of the tensors that are on one device each."""
    found: dict[Any, list[Any]] = {}
    for t in tensors:
        found.setdefault(t._v.device, []).append(t)
    return [*found.values()]


def put_beside(t: Any, made: Any) -> Any:
    """Return a new tensor on the device to which `t` is committed, if it is to one."""
    where = t._v.device
    if where is None or isinstance(where, tuple) or where is made._v.device:
        return made
    return on_device(made, t.device)


def brought_to(t: Any, other: Any) -> Any:
    """Return what is to be copied into `t` where `t` is."""
    if other._v.device is None and t._v.device is not META:
        return other
    return moved(other, t.device)


def on_device(t: Any, where: Any) -> Any:
    """Return a new tensor on the device that it was asked for; it stays there from now on."""
    target = jax_device(where)
    if t._array is None or t._shares or target in (META, t._v.device) or not has_several():
        return moved(t, where)
    return _copied_at_once(t, t._array, target)


_REST = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
_SIGNATURES = tuple(
    f"{first}, {_REST}"
    for first in (
        "torch.device device = None, torch.dtype dtype = None", "torch.dtype dtype",
        "Tensor tensor",
    )
)  # fmt: skip
_PLACES = {  # by what comes first
    "device": ("device", "dtype", "non_blocking", "copy"),
    "dtype": ("dtype", "non_blocking", "copy"),
    "tensor": ("tensor", "non_blocking", "copy"),
}
_KINDS: dict[str, Any] = {
    "device": (str, device_class, int), "dtype": (dtype_class, type, bool, float, complex),
    "tensor": Handle, "non_blocking": bool, "copy": bool, "memory_format": memory_format,
}  # fmt: skip


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `to` by name.

    Raises:
      TypeError: PyTorch's, if they suit none of its signatures.
    """
    first = "device"
    if isinstance(args[0] if args else kwargs.get("tensor"), Handle):
        first = "tensor"
    elif args and isinstance(args[0], _KINDS["dtype"]):
        first = "dtype"
    names = _PLACES[first]
    given = dict(zip(names, args, strict=False)) | kwargs
    allowed = {*names, "memory_format"}
    fits = len(args) + len(kwargs) == len(given) and given.keys() <= allowed
    if not fits or not all(
        isinstance(x, _KINDS[name]) or (x is None and name in ("device", "dtype", "memory_format"))
        for name, x in given.items()
    ):
        raise TypeError(describe_mismatch(_SIGNATURES, args, kwargs, "to"))
    return given


def as_device(where: Any) -> Any:
    """Return the device that a string, a number of an accelerator, or a device names."""
    if isinstance(where, device_class):
        return where
    return device_class("cuda", where) if isinstance(where, int) else device_class(where)


def to(t: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a tensor of another dtype or on another device; itself if it is so already.

    Called as `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`, each with
    `non_blocking` (nothing here waits for a copy), `copy` and `memory_format`.

    Raises:
      TypeError: if the arguments are of other kinds.
      RuntimeError: if there is no such device.
      NotImplementedError: if a tensor without data should move to a device.
    """
    given = _given(args, kwargs)
    copy, memory_format = given.get("copy", False), given.get("memory_format")
    dtype, where = given.get("dtype"), given.get("device")
    if isinstance(dtype, (bool, float, complex)):
        dtype = type(dtype)
    if "tensor" in given:
        dtype, where = given["tensor"].dtype, given["tensor"].device
    if isinstance(dtype, type):
        try:
            dtype = as_dtype("to", dtype)
        except TypeError:
            raise TypeError(describe_mismatch(_SIGNATURES, args, kwargs, "to")) from None
    out, want = t, t._v.dtype if dtype is None else dtype.np
    if where is not None:
        out = moved(t, as_device(where), want)
    if want != t._v.dtype:
        if want != out._v.dtype or memory_format is not None:
            out = copied_as(out, want, memory_format)
        drops_imaginary(t._v.dtype, want, t._v.numel)
        return out
    if memory_format is not None and (copy or not is_in(layout(out), memory_format)):
        return copied_as(out, want, memory_format)
    return copied_as(out, want) if copy and out is t else out
