"""`torch.cuda.amp` and `torch.cpu.amp`, which PyTorch deprecates for `torch.amp`.

And the functions of one device each, `torch.get_autocast_gpu_dtype()`, that tell of autocast.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._core.dtypes import dtype
from .._ops.autocast.custom_fwd import custom_bwd, custom_fwd
from .._ops.autocast.scope import (
    autocast,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .grad_scaler import GradScaler


def _deprecated(place: str, name: str) -> None:
    old, args = f"torch.{place}.amp.{name}", f"'{place}', args..."
    if name.startswith("custom"):
        args = f"args..., device_type='{place}'"
    warnings.warn(
        f"`{old}(args...)` is deprecated. Please use `torch.amp.{name}({args})` instead.",
        FutureWarning,
        stacklevel=3,
    )


def autocast_of(place: str, lower: dtype) -> type[autocast]:
    """`autocast` of devices of one type, whose default dtype is `lower`."""

    class Autocast(autocast):
        def __init__(
            self, enabled: bool = True, dtype: Any = lower, cache_enabled: bool = True
        ) -> None:
            _deprecated(place, "autocast")
            super().__init__(place, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    Autocast.__name__ = Autocast.__qualname__ = "autocast"
    return Autocast


def scaler_of(place: str) -> type[GradScaler]:
    """`GradScaler` of devices of one type."""

    class Scaler(GradScaler):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            _deprecated(place, "GradScaler")
            super().__init__(place, *args, **kwargs)

    Scaler.__name__ = Scaler.__qualname__ = "GradScaler"
    return Scaler


def _custom(name: str, new: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(new)
    def decorate(*args: Any, **kwargs: Any) -> Any:
        _deprecated("cuda", name)
        return new(*args, device_type="cuda", **kwargs)

    return decorate


cuda_fwd, cuda_bwd = _custom("custom_fwd", custom_fwd), _custom("custom_bwd", custom_bwd)


def _renamed(old: str, new: Callable[..., Any], device: str, given: str = "") -> Callable[..., Any]:
    """`new` of one device, under the name that it had.

    Args:
      given: what the one argument is called, "" if there is none.
    """
    more = f", {given}" if given else ""

    def fn(*args: Any) -> Any:
        warnings.warn(
            f"torch.{old}({given}) is deprecated. Please use "
            f"torch.{new.__name__}('{device}'{more}) instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        if len(args) != bool(given):
            raise TypeError(f"{old}() takes {int(bool(given))} arguments ({len(args)} given)")
        return new(device, *args)

    fn.__name__ = fn.__qualname__ = old
    fn.__doc__ = f"`{new.__name__}` of {device!r}, as it was called once."
    return fn


is_autocast_cpu_enabled = _renamed("is_autocast_cpu_enabled", is_autocast_enabled, "cpu")
get_autocast_cpu_dtype = _renamed("get_autocast_cpu_dtype", get_autocast_dtype, "cpu")
get_autocast_gpu_dtype = _renamed("get_autocast_gpu_dtype", get_autocast_dtype, "cuda")
set_autocast_cpu_enabled = _renamed(
    "set_autocast_cpu_enabled", set_autocast_enabled, "cpu", "enabled"
)
set_autocast_cpu_dtype = _renamed("set_autocast_cpu_dtype", set_autocast_dtype, "cpu", "dtype")
set_autocast_gpu_dtype = _renamed("set_autocast_gpu_dtype", set_autocast_dtype, "cuda", "dtype")
