"""Comparisons and choices, elementwise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, category, cpp_name, is_number, scalar_name
from ...program.op import Decorator, ops_with
from ..shape.dimensions import broadcast_shapes
from .operands import BOOL, aligned, refuse

op: Decorator = ops_with(elementwise=True)

Array = jax.Array


def _compared(kernel: str, input: Any, other: Any) -> list[Array]:
    x, y = aligned(input, other)
    refuse(kernel, x.dtype, 3)
    return [x, y]


@op(differentiable=False, inplace=True, numbers=("other",))
def eq(input: Array, other: Any) -> Array:
    """Return True where both are equal."""
    x, y = aligned(input, other)
    return x == y


@op(differentiable=False, inplace=True, numbers=("other",), aliases=("not_equal",))
def ne(input: Array, other: Any) -> Array:
    """Return True where they differ."""
    x, y = aligned(input, other)
    return x != y


@op(differentiable=False, inplace=True, numbers=("other",), aliases=("less",))
def lt(input: Array, other: Any) -> Array:
    """Return True where the first is less."""
    x, y = _compared("lt_cpu", input, other)
    return x < y


@op(differentiable=False, inplace=True, numbers=("other",), aliases=("less_equal",))
def le(input: Array, other: Any) -> Array:
    """Return True where the first is not greater."""
    x, y = _compared("le_cpu", input, other)
    return x <= y


@op(differentiable=False, inplace=True, numbers=("other",), aliases=("greater",))
def gt(input: Array, other: Any) -> Array:
    """Return True where the first is greater."""
    x, y = _compared("gt_cpu", input, other)
    return x > y


@op(differentiable=False, inplace=True, numbers=("other",), aliases=("greater_equal",))
def ge(input: Array, other: Any) -> Array:
    """Return True where the first is not less."""
    x, y = _compared("ge_cpu", input, other)
    return x >= y


@op(differentiable=False)
def isclose(
    input: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    """Return True where `|input - other| <= atol + rtol * |other|`."""
    if input.dtype != other.dtype:
        raise RuntimeError(f"{scalar_name(input.dtype)} did not match {scalar_name(other.dtype)}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    x, y = aligned(input, other)
    close = x == y
    if equal_nan and category(x.dtype) >= 2:
        close = close | ((x != x) & (y != y))
    if rtol == 0 and atol == 0:
        return close
    if category(x.dtype) < 2:  # the difference of bytes is not one of bytes
        x, y = aligned(x, y, to_float=True)
    error = jnp.abs(x - y)
    allowed = jnp.abs(y * cast(rtol, y.dtype)) + cast(atol, error.dtype)
    return close | (jnp.isfinite(error) & (error <= allowed))


@op(
    saves={"condition": "*"},
    method=False,
    numbers=("input", "other"),
    fits={"input": "integer", "other": "integer"},
)
def where(condition: Array, input: Any, other: Any) -> Array:
    """Take `input` where the condition holds, else `other`."""
    if condition.dtype not in (BOOL, np.dtype("uint8")):
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{scalar_name(condition.dtype)}"
        )
    broadcast_shapes(condition.shape, getattr(input, "shape", ()))  # in PyTorch's order
    x, y = aligned(input, other)
    if condition.dtype != BOOL:
        condition = condition != 0
    broadcast_shapes(condition.shape, broadcast_shapes(x.shape, y.shape))
    return jnp.where(condition, x, y)


def _masked_in_place(input: Array, mask: Array, value: Any) -> None:
    if mask.dtype == BOOL and (is_number(value) or not value.ndim):
        broadcast_shapes(input.shape, mask.shape)


@op(saves={"mask": "*"}, inplace=True, numbers=("value",), fits={"value": "any"},
    inplace_check=_masked_in_place)  # fmt: skip
def masked_fill(input: Array, mask: Array, value: Any) -> Array:
    """Replace by a number, or by a 0-dim tensor, where the mask holds."""
    if mask.dtype != BOOL:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{cpp_name(mask.dtype)}"
        )
    if not is_number(value) and value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    broadcast_shapes(mask.shape, input.shape)
    return jnp.where(mask, cast(value, input.dtype), input)
