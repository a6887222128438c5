"""Bitwise and logical operations and divisors, elementwise. None has a derivative."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_integral, promote, scalar_name
from ...program.op import Decorator, ops_with
from .operands import BOOL, aligned, refuse

op: Decorator = ops_with(elementwise=True)

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
    there, count = _counted(y)
    return jnp.where(there, lax.shift_left(x, count), 0)


@op(differentiable=False, inplace=True, numbers=("input", "other"))
def bitwise_right_shift(input: Any, other: Any) -> Array:
    """Shift bits down, keeping the sign; by less than 0 or too many leaves that alone."""
    x, y = _bits("rshift_cpu", input, other, 0)
    there, count = _counted(y)
    if x.dtype.kind != "i":
        return jnp.where(there, lax.shift_right_logical(x, count), 0)
    return lax.shift_right_arithmetic(x, jnp.where(there, count, 8 * x.dtype.itemsize - 1))


def _counted(bits: Array) -> tuple[Array, Array]:
    """Return where there are so many bits to shift by, and a count that XLA has an answer for."""
    there = (bits >= 0) & (bits < 8 * bits.dtype.itemsize)
    return there, jnp.where(there, bits, 0)


def _truths(input: Array, other: Array) -> list[Array]:
    return [x != 0 if x.dtype != BOOL else x for x in aligned(input, other)]


@op(differentiable=False, inplace=True)
def logical_and(input: Array, other: Array) -> Array:
    """Return True where both are nonzero."""
    x, y = _truths(input, other)
    return x & y


@op(differentiable=False, inplace=True)
def logical_or(input: Array, other: Array) -> Array:
    """Return True where any is nonzero."""
    x, y = _truths(input, other)
    return x | y


@op(differentiable=False, inplace=True)
def logical_xor(input: Array, other: Array) -> Array:
    """Return True where one of both is nonzero."""
    x, y = _truths(input, other)
    return x ^ y


@op(differentiable=False, inplace=True)
def logical_not(input: Array) -> Array:
    """Return True where it is zero."""
    (x,) = promote(input)
    return x == 0 if x.dtype != BOOL else ~x


def _two_integers(name: str, a: Array, b: Array) -> list[Array]:
    a, b = aligned(a, b)
    if not is_integral(a.dtype) or a.dtype == bool:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(a.dtype)}'")
    return [a, b]


@op(inplace=True, differentiable=False)
def gcd(input: Array, other: Array) -> Array:
    """Compute the greatest common divisor."""
    return _gcd(*_two_integers("gcd_cpu", input, other))


def _gcd(a: Array, b: Array) -> Array:
    """Run Euclid's algorithm, also for the least integers, whose `abs` is negative.

    `jnp.gcd` has no end for those.
    """

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = pair
        done = a == 0
        rest = lax.rem(b, jnp.where(done, jnp.ones((), a.dtype), a))
        return jnp.where(done, a, rest), jnp.where(done, b, a)

    a, b = jnp.broadcast_arrays(jnp.abs(a), jnp.abs(b))
    return lax.while_loop(lambda pair: (pair[0] != 0).any(), step, (a, b))[1]


@op(inplace=True, differentiable=False)
def lcm(input: Array, other: Array) -> Array:
    """Compute the least common multiple."""
    a, b = _two_integers("lcm_cpu", input, other)
    divisor = _gcd(a, b)
    # In C what is narrower than an int is multiplied as one.
    wide = a.dtype if a.dtype.itemsize >= 4 else np.dtype("int32")
    parts = lax.div(*jnp.broadcast_arrays(a, jnp.where(divisor == 0, 1, divisor).astype(a.dtype)))
    product = jnp.abs(parts.astype(wide) * b.astype(wide)).astype(a.dtype)
    return jnp.where(divisor == 0, jnp.zeros((), a.dtype), product)
