"""Bitwise and logical operations, elementwise. None has a derivative."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._dtypes import promote
from .._op import op
from ._elementwise import BOOL, aligned, refuse

Array = jax.Array


def _bits(kernel: str, input: Any, other: Any, *refused: int) -> list[Array]:
    x, y = aligned(input, other)
    refuse(kernel, x.dtype, 2, 3, *refused)
    return jnp.broadcast_arrays(x, y)


@op(differentiable=False, inplace=True, numbers=("input", "other"))
def bitwise_and(input: Any, other: Any) -> Array:
    """Keep the bits that both have."""
    x, y = _bits("bitwise_and_cpu", input, other)
    return x & y


@op(differentiable=False, inplace=True, numbers=("input", "other"))
def bitwise_or(input: Any, other: Any) -> Array:
    """Join the bits of both."""
    x, y = _bits("bitwise_or_cpu", input, other)
    return x | y


@op(differentiable=False, inplace=True, numbers=("input", "other"))
def bitwise_xor(input: Any, other: Any) -> Array:
    """Keep the bits that one of both has."""
    x, y = _bits("bitwise_xor_cpu", input, other)
    return x ^ y


@op(differentiable=False, inplace=True)
def bitwise_not(input: Array) -> Array:
    """Flip the bits; of a bool, "not"."""
    refuse("bitwise_not_cpu", input.dtype, 2, 3)
    return ~input


@op(differentiable=False, inplace=True, numbers=("input", "other"))
def bitwise_left_shift(input: Any, other: Any) -> Array:
    """Shift bits up; by less than 0 or more than there are gives 0."""
    x, y = _bits("lshift_cpu", input, other, 0)
    return lax.shift_left(x, y)


@op(differentiable=False, inplace=True, numbers=("input", "other"))
def bitwise_right_shift(input: Any, other: Any) -> Array:
    """Shift bits down, keeping the sign."""
    x, y = _bits("rshift_cpu", input, other, 0)
    return (lax.shift_right_arithmetic if x.dtype.kind == "i" else lax.shift_right_logical)(x, y)


def _truths(input: Array, other: Array) -> list[Array]:
    return [x != 0 if x.dtype != BOOL else x for x in aligned(input, other)]


@op(differentiable=False, inplace=True)
def logical_and(input: Array, other: Array) -> Array:
    """Where both are nonzero."""
    x, y = _truths(input, other)
    return x & y


@op(differentiable=False, inplace=True)
def logical_or(input: Array, other: Array) -> Array:
    """Where any is nonzero."""
    x, y = _truths(input, other)
    return x | y


@op(differentiable=False, inplace=True)
def logical_xor(input: Array, other: Array) -> Array:
    """Where one of both is nonzero."""
    x, y = _truths(input, other)
    return x ^ y


@op(differentiable=False, inplace=True)
def logical_not(input: Array) -> Array:
    """Where it is zero."""
    (x,) = promote(input)
    return x == 0 if x.dtype != BOOL else ~x
