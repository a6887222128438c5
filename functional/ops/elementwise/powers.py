"""Powers and roots, elementwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast, category, is_complex, is_integral, is_number, promote
from ...program.op import Decorator, Fault, ops_with
from ..nn.checks import wide
from . import complex_numbers
from .operands import BOOL, aligned, unsupported, with_jvp

op: Decorator = ops_with(elementwise=True)

Array = jax.Array


def _pow_tangent(result: Array, primals: Any, tangents: Any, power: Any = None) -> Array:
    """Differentiate by PyTorch's `pow_backward_self` and `pow_backward_exponent`."""
    (x, y), (dx, dy) = primals, tangents
    flat = y == 0
    by_x = jnp.where(flat, 0, y * (power or _pow)(x, jnp.where(flat, 1, y - 1)))
    zero = (x == 0) & (jnp.real(y) >= 0)
    if is_complex(y.dtype):
        zero &= jnp.imag(y) == 0
    by_y = jnp.where(zero, 0, result * jnp.log(jnp.where(zero, 1, x)))
    return dx * by_x + dy * by_y


def _power(x: Array, y: Array) -> Array:
    """Compute `x ** y`; of a complex 0 it is C's `exp(y * log(x))`."""
    if not is_complex(x.dtype):
        return lax.pow(x, y)
    zero, direction = x == 0, jnp.real(y)
    undefined = jnp.where(direction < 0, complex(np.inf, np.nan), complex(np.nan, np.nan))
    at_zero = jnp.where(direction > 0, complex(0.0, -0.0), undefined).astype(x.dtype)
    found = lax.pow(jnp.where(zero, 1, x), y)
    # Without an angle there is none in the result, where XLA has `inf * 0`.
    real = jnp.isinf(found.real) & (x.imag == 0) & (x.real > 0) & (y.imag == 0)
    return jnp.where(zero, at_zero, jnp.where(real, lax.complex(found.real, x.imag), found))


_pow = with_jvp(_power, _pow_tangent)


def _number_power(x: Array, y: Array) -> Array:
    """Compute `x ** y` with a number as exponent, which PyTorch looks at first."""
    few = [jnp.ones_like(x), x, x * x, x * x * x]
    return jnp.select([y == n for n in range(4)], few, _power(x, y))


_pow_number: Callable[..., Array] = with_jvp(
    _number_power,
    lambda r, primals, tangents: _pow_tangent(r, primals, tangents, _pow_number),
)


_real_rsqrt = with_jvp(lambda x: lax.rsqrt(x), lambda r, x, dx: dx[0] * (-0.5 * (r * r * r)))


def _rsqrt(x: Array) -> Array:
    return complex_numbers.rsqrt(x) if is_complex(x.dtype) else _real_rsqrt(x)


def _static_pow(x: Array, n: Any) -> Array | None:
    """Compute `x ** n` for the Python numbers that have something faster than `pow`."""
    if n == 0:
        return jnp.ones_like(x)
    if n == 3 and x.dtype == np.float16:  # PyTorch rounds once here, twice in bfloat16
        return lax.integer_pow(wide(x), 3).astype(x.dtype)
    if is_integral(x.dtype) or n in (1, 2, 3, 4, -1, -2):
        return lax.integer_pow(x, int(n))
    if n == 0.5:
        return complex_numbers.sqrt(x)
    return _rsqrt(x) if n == -0.5 else None


def _integer_pow(x: Array, n: Array) -> Array:
    """Compute an integer power; of a negative exponent only ±1 leaves something."""
    odd = jnp.where(n % 2 == 0, 1, x)
    rest = jnp.where(x == 1, 1, jnp.where(x == -1, odd, 0)) if x.dtype.kind == "i" else x * 0
    return jnp.where(n < 0, rest, _wrapped_pow(x, jnp.maximum(n, 0))).astype(x.dtype)


def _wrapped_pow(x: Array, n: Array) -> Array:
    """Compute `x ** n` modulo the dtype's range: `jnp.power` reads but six bits of the exponent."""
    bits = 8 * n.dtype.itemsize - (n.dtype.kind == "i")
    result = jnp.ones_like(x)
    for _ in range(bits):
        result = jnp.where(n & 1 == 1, result * x, result)
        x, n = x * x, n >> 1
    return result


def _pow_check(input: Any, exponent: Any) -> list[Fault]:
    runtime = getattr(exponent, "weak_type", False) and category(exponent.dtype) == 1
    if not runtime or is_number(input) or not is_integral(input.dtype):
        return []
    text = "Integers to negative integer powers are not allowed."
    return [Fault(exponent < 0, RuntimeError, text)]


def _need_positive(input: Any, exponent: Any) -> None:
    whole = type(exponent) is int and not is_number(input) and is_integral(input.dtype)
    if whole and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


@op(backward="PowBackward0", saves={"self": "*", "exponent": "*", "result": "*exponent"},
    inplace=True, numbers=("input", "exponent"), check=_pow_check,
    fits={"exponent": "narrow"}, need=_need_positive)  # fmt: skip
def pow(input: Any, exponent: Any) -> Array:
    """Raise to a power; the gradient is 0 where the exponent is 0."""
    number = isinstance(exponent, (bool, int, float))
    x, y = aligned(input, exponent)
    if x.dtype == BOOL:
        if number:
            return x | jnp.logical_not(exponent)
        raise unsupported("pow", x.dtype)
    if number:
        _need_positive(x, exponent)
        quick = _static_pow(x, exponent)
        if quick is not None:
            return quick
    x, y = jnp.broadcast_arrays(x, y)
    if is_integral(x.dtype):
        return _integer_pow(x, y)
    return (_pow_number if is_complex(x.dtype) and is_number(exponent) else _pow)(x, y)


@op(backward="PowBackward0", saves={"self": "*"}, inplace=True)
def square(input: Array) -> Array:
    """Multiply by itself."""
    (x,) = promote(input)
    x = cast(x, np.dtype("int64")) if x.dtype == BOOL else x
    return lax.integer_pow(x, 2)


@op(saves={"result": "*"}, inplace=True)
def reciprocal(input: Array) -> Array:
    """Divide one by it."""
    (x,) = promote(input, to_float=True)
    return 1 / x


@op(saves={"result": "*"}, inplace=True)
def sqrt(input: Array) -> Array:
    """Take the square root."""
    (x,) = promote(input, to_float=True)
    return complex_numbers.sqrt(x)


@op(saves={"result": "*"}, inplace=True)
def rsqrt(input: Array) -> Array:
    """Divide one by the square root."""
    (x,) = promote(input, to_float=True)
    return _rsqrt(x)
