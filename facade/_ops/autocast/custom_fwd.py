"""`custom_fwd` and `custom_bwd`: custom autograd functions under autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..._core.dtypes import dtype, float64
from ..._core.handle import Handle
from .scope import autocast, get_autocast_dtype, is_autocast_enabled

Function = Callable[..., Any]


def _cast(value: Any, to: dtype) -> Any:
    """Cast floating point tensors in nested containers; doubles stay."""
    if isinstance(value, Handle):
        t: Any = value
        return t.to(to) if t.is_floating_point() and t.dtype is not float64 else t
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, to): _cast(v, to) for k, v in value.items()}
    if isinstance(value, Iterable):
        made = (_cast(v, to) for v in value)
        return type(value)(made) if isinstance(value, (list, tuple)) else made  # type: ignore[call-arg]
    return value


def _checked(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(
    fwd: Function | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Any:
    """Decorate `forward` of an `autograd.Function` for autocast.

    Args:
      fwd: the method.
      device_type: as in `autocast`.
      cast_inputs: inside of autocast, cast floating point tensors to this dtype and run without
        autocast; None runs under whatever autocast is on.
    """
    _checked(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        enabled = is_autocast_enabled(device_type)
        args[0]._dtype = get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return wrapped


def custom_bwd(bwd: Function | None = None, *, device_type: str) -> Any:
    """Decorate `backward` of an `autograd.Function`: it runs under the autocast of `forward`."""
    _checked(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return wrapped
