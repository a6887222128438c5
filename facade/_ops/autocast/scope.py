"""`autocast`, and the functions that ask for and set what it sets. Per thread."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax

from ..._core.cast_tensors import casts
from ..._core.dtypes import bfloat16, dtype, float16
from ..._core.trie import local
from .casts import DTYPES, checked, settle, state


def is_autocast_available(device_type: str) -> bool:
    """Tell whether devices of this type have autocast."""
    return checked(device_type) in DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Tell whether ops on devices of this type are autocast now."""
    return checked(device_type) in state.enabled


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turn autocast on or off from here on."""
    (state.enabled.add if enabled else state.enabled.discard)(checked(device_type))
    settle()


def get_autocast_dtype(device_type: str) -> dtype:
    """Return autocast's dtype on devices of this type: bfloat16 on CPUs, float16 on GPUs."""
    if checked(device_type) not in DTYPES:
        raise RuntimeError("unsupported scalarType")
    return state.dtypes[device_type]


def set_autocast_dtype(device_type: str, dtype_: dtype) -> None:
    """Set what autocast computes in."""
    if not isinstance(dtype_, dtype):
        raise TypeError(
            "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not "
            f"{type(dtype_).__name__}"
        )
    state.dtypes[checked(device_type)] = dtype_
    settle()


def is_autocast_cache_enabled() -> bool:
    """Tell whether a weight is cast once for all its uses inside of autocast."""
    return casts.enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether weights are cast once for all their uses, or each time."""
    casts.enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the weights that were cast."""
    casts.kept.clear()


def autocast_increment_nesting() -> int:
    """Open one more context; returns how many are open."""
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    """Close a context; returns how many are open still."""
    state.nesting -= 1
    return state.nesting


class autocast:
    """Record ops in the dtype that PyTorch's autocast runs them in; a decorator too.

    On CPUs matrix products, convolutions and attention run in `dtype`, losses, `prod`, FFTs and
    linear algebra in float32, all else in the dtype that it gets. A Flax model runs as after
    `model.compute_in(dtype)`, unless it was told what to compute in; other JAX functions
    (`call_jax`) get what they are given.

    Args:
      device_type: "cpu", "cuda", "tpu", ...; it takes effect if tensors are on such a device.
      dtype: bfloat16 or float16; by default what `get_autocast_dtype` says.
      enabled: False turns autocast off in the block.
      cache_enabled: cast a parameter once for all its uses in the outermost block.

    Raises:
      RuntimeError: a device type without autocast.

    >>> import leafax
    >>> x = leafax.ones(2, 2)
    >>> with leafax.autocast("cpu"):
    ...     (x @ x).dtype, (x + x).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self._cache_enabled = casts.enabled if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and jax.default_backend() != "gpu":
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2
            )
            enabled = False
        elif enabled and self.fast_dtype not in (bfloat16, float16):
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 "
                "currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self) -> Any:
        device = self.device
        before = (is_autocast_enabled(device), state.dtypes[device], casts.enabled)
        self.__dict__.setdefault("_before", []).append(before)
        autocast_increment_nesting()
        casts.enabled = self._cache_enabled
        self._set(self._enabled, self.fast_dtype)
        return self

    def __exit__(self, *exc: Any) -> None:
        enabled, dtype_, casts.enabled = self._before.pop()
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        self._set(enabled, dtype_)

    _before: list[tuple[bool, dtype, bool]]

    def _set(self, enabled: bool, dtype_: dtype) -> None:
        state.dtypes[self.device] = dtype_
        (state.enabled.add if enabled else state.enabled.discard)(self.device)
        settle()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                f"Did you mean to use autocast as a context manager? For example:\n"
                f"    with torch.autocast(device_type=...):\n"
                f"        output = model(input)"
            )

        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return wrapped


def compute_dtype() -> dtype | None:
    """Return what autocast computes in where tensors are, or None where it is off."""
    return local.mode.autocast  # type: ignore[no-any-return]
