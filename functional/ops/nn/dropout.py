"""Dropout: the bodies that draw. The facade returns the input itself when not training."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, category, scalar_name
from ...program.op import op
from .checks import wide

Array = jax.Array

# torch.dropout and its like take (input, p, train); nn.functional wraps them.
ALSO_FUNCTIONAL = ()


def kept(key: Array, p: Any, shape: tuple[int, ...]) -> Array:
    """Draw booleans that are False with probability `p`."""
    bits = jax.random.bits(key, shape, np.uint32)
    # One comparison of integers, cheaper than making uniform floats.
    limit = jnp.minimum(jnp.asarray(p, np.float64) * 2.0**32, 2.0**32 - 1).astype(np.uint32)
    return bits >= limit


def dropped(key: Array, x: Array, p: Any, shape: tuple[int, ...]) -> Array:
    """Scale `x` by `1 / (1 - p)`, or zero it with probability `p`, one draw for each of `shape`."""
    keep = kept(key, p, shape)
    rest = 1.0 - jnp.asarray(p, np.float64)
    scale = jnp.where(rest > 0, 1 / jnp.where(rest > 0, rest, 1.0), 0.0)
    wider = wide(x)
    return cast(jnp.where(keep, wider * cast(scale, wider.dtype), 0), x.dtype)


def _check(input: Array, p: Any) -> None:
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if category(input.dtype) < 2:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {scalar_name(input.dtype)}"
        )


def _feature_shape(input: Array) -> tuple[int, ...]:
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return input.shape[:2] + (1,) * (input.ndim - 2)


@op(
    backward="MulBackward0", method=False, inplace=True, random=True, residuals=True,
    numbers=("p",),
)  # fmt: skip
def dropout(key: Array, input: Array, p: Any, train: bool) -> Array:
    """Zero each element with probability `p`, scale the others by `1 / (1 - p)`."""
    if not train:
        return input
    _check(input, p)
    return dropped(key, input, p, input.shape)


@op(
    backward="MulBackward0", method=False, inplace=True, random=True, residuals=True,
    numbers=("p",),
)  # fmt: skip
def feature_dropout(key: Array, input: Array, p: Any, train: bool) -> Array:
    """Drop whole channels: one draw for each of the first two dims."""
    if not train:
        return input
    if isinstance(p, (int, float)) and p == 1 and input.ndim < 2:  # nothing is drawn
        return input * jnp.zeros_like(input)
    shape = _feature_shape(input)
    _check(input, p)
    return dropped(key, input, p, shape)


@op(method=False, random=True, residuals=True, numbers=("p",), saves={"result1": "*"})
def native_dropout(key: Array, input: Array, p: Any, train: bool | None) -> Any:
    """Drop elements, and return which were kept."""
    if train is False:
        return input, jnp.ones(input.shape, bool)
    _check(input, p)
    keep = kept(key, p, input.shape)
    # The same key draws the same bits: XLA computes them once.
    return dropped(key, input, p, input.shape), keep


def _alpha(key: Array, input: Array, p: Any, shape: tuple[int, ...]) -> Array:
    """Drop to the negative saturation of SELU, keeping mean and variance."""
    _check(input, p)
    alpha = 1.7580993408473766
    keep = kept(key, p, shape)
    p = jnp.asarray(p, np.float64)
    rest = 1.0 - p
    spread = jnp.where(rest > 0, (alpha**2 * p + 1) * rest, 1.0)
    scale = jnp.where(rest > 0, 1 / jnp.sqrt(spread), 0.0)
    x = wide(input)
    scale, shift = cast(scale, x.dtype), cast(scale * alpha * p, x.dtype)
    low = shift - alpha * scale
    return cast(jnp.where(keep, x * scale + shift, low), input.dtype)


@op(
    backward="AddBackward0", method=False, inplace=True, random=True, residuals=True,
    numbers=("p",),
)  # fmt: skip
def alpha_dropout(key: Array, input: Array, p: Any, train: bool) -> Array:
    """Drop elements as self-normalizing networks need it."""
    return _alpha(key, input, p, input.shape) if train else input


@op(
    backward="AddBackward0", method=False, inplace=True, random=True, residuals=True,
    numbers=("p",),
)  # fmt: skip
def feature_alpha_dropout(key: Array, input: Array, p: Any, train: bool) -> Array:
    """Drop whole channels as self-normalizing networks need it."""
    return _alpha(key, input, p, _feature_shape(input)) if train else input
