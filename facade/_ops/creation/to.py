"""`Tensor.to`: dtypes and devices."""

from __future__ import annotations

from typing import Any

import jax

from leafax.functional.program.op import TABLE

from ..._core.dtypes import as_dtype
from ..._core.dtypes import device as device_class
from ..._core.dtypes import dtype as dtype_class
from ..._core.handle import Handle
from ..._core.jax_devices import jax_device
from ..._core.memory_format import memory_format
from ..._core.trie import local
from ..._core.warn_once import drops_imaginary
from ..._dispatch.record import apply
from ..._rules.strides.channels_last import is_in, strides_in
from ..._runtime.observation import observe
from ..._signatures.overload_errors import describe_mismatch
from ..._storage.strides import layout
from ..._storage.write import written_once
from ..._tracing.inputs import from_array


def copied_as(t: Any, dtype: Any, memory_format: Any = None) -> Any:
    """Return a copy of another dtype or in a memory format."""
    if memory_format is None:
        out = apply(TABLE["_to_copy"], t, dtype)
    else:
        strides_in(t.shape, memory_format)  # or raise
        out = apply(TABLE["_to_copy"], t, dtype, memory_format)
    if t._v.inference and not local.mode.inference:  # PyTorch counts the copying, as in `clone`
        written_once(out)
    return out


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


def to(t: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a tensor of another dtype or on another device; itself if it is so already.

    Called as `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`, each with
    `non_blocking` (nothing here ever blocks), `copy` and `memory_format`.

    Raises:
      TypeError: if the arguments are of other kinds.
      RuntimeError: if there is no such device, or a tensor that requires grad should move to one.
    """
    given = _given(args, kwargs)
    copy, memory_format = given.get("copy", False), given.get("memory_format")
    dtype, where = given.get("dtype"), given.get("device")
    if isinstance(dtype, (bool, float, complex)):
        dtype = type(dtype)
    if "tensor" in given:
        dtype, where = given["tensor"].dtype, given["tensor"].device
    if isinstance(where, int):
        where = device_class("cuda", where)
    elif isinstance(where, str):
        where = device_class(where)
    out = t
    if where is not None and where.type != t.device.type:
        target = jax_device(where)
        if t._array is None and t._trace is None:
            observe(t, "to(device)")
        if not t._tracked:
            out = from_array(jax.device_put(observe(t, "to(device)"), target))
        else:
            raise RuntimeError(
                "a tensor that requires grad cannot be moved inside a recorded program: move it "
                "first, then call requires_grad_()"
            )
    if isinstance(dtype, type):
        try:
            dtype = as_dtype("to", dtype)
        except TypeError:
            raise TypeError(describe_mismatch(_SIGNATURES, args, kwargs, "to")) from None
    if dtype is not None and dtype.np != t._v.dtype:
        out = copied_as(out, dtype.np, memory_format)
        drops_imaginary(t._v.dtype, dtype.np, t._v.numel)
        return out
    if memory_format is not None and (copy or not is_in(layout(out), memory_format)):
        return copied_as(out, t._v.dtype, memory_format)
    return copied_as(out, t._v.dtype) if copy and out is t else out
