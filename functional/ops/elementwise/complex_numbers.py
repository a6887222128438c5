"""Functions of complex numbers, with the signs of zeros that C99 gives them.

On a branch cut the sign of a zero tells the side. XLA's own functions forget these signs; and JAX's
derivative of `acosh` is of the other branch in the left half plane. The derivatives here are
PyTorch's formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_complex
from .operands import with_jvp

Array = jax.Array
Function = Callable[[Array], Array]


def _mirrored(fn: Function) -> Function:
    """Extend `fn` by `fn(conj(x)) = conj(fn(x))`, below a cut along the real axis too."""

    def value(x: Array) -> Array:
        below = jnp.signbit(x.imag)
        upper = fn(lax.complex(x.real, jnp.abs(x.imag)))
        return jnp.where(below, jnp.conj(upper), upper)

    return value


def _odd(fn: Function) -> Function:
    """Extend `fn` from its first quadrant by `fn(-x) = -fn(x)` and `fn(conj(x)) = conj(fn(x))`."""

    def value(x: Array) -> Array:
        first = fn(lax.complex(jnp.abs(x.real), jnp.abs(x.imag)))
        return lax.complex(_signed(x.real, first.real), _signed(x.imag, first.imag))

    return value


def _signed(by: Array, x: Array) -> Array:
    return jnp.where(jnp.signbit(by), -x, x)


def _even(fn: Function) -> Function:
    """Extend `fn` from its first quadrant by `fn(-x) = fn(x)` and `fn(conj(x)) = conj(fn(x))`."""

    def value(x: Array) -> Array:
        first = fn(lax.complex(jnp.abs(x.real), jnp.abs(x.imag)))
        return lax.complex(first.real, _signed(x.real, _signed(x.imag, first.imag)))

    return value


def _through_zero(fn: Function) -> Function:
    """Make `fn(x) = x` at zeros of either sign."""
    return lambda x: jnp.where(x == 0, x, fn(x))


def _cos(x: Array) -> Array:
    y = lax.cos(x)
    return lax.complex(y.real, jnp.where(x.real == 0, -0.0, y.imag))


def _sinh(x: Array) -> Array:
    y = lax.sinh(x)
    minus = (x.real == 0) & (lax.cos(x.imag) < 0)
    return lax.complex(jnp.where(minus, -0.0, y.real), y.imag)


def _atan(x: Array) -> Array:
    y = lax.atan(x)  # in the first quadrant XLA's has zeros of either sign
    return lax.complex(y.real, jnp.abs(y.imag))


def _acos(x: Array) -> Array:
    """Compute `pi / 2 - asin(x)` in double precision, as PyTorch does: no zero is negative."""
    y = _mirrored(lax.acos)(x)
    if x.dtype == np.complex64:
        return y
    return lax.complex(y.real, jnp.where(y.imag == 0, 0, y.imag))


def _exp2(x: Array) -> Array:
    log = np.log(2).astype(x.real.dtype)
    return exp(lax.complex(x.real * log, x.imag * log))


def _entry(real: Function, value: Function, along: Callable[..., Any]) -> Function:
    """Choose a function by dtype; `along(dx, x, result)` is the tangent of the complex one."""
    complex_one = with_jvp(value, lambda r, x, dx: along(dx[0], x[0], r))
    return lambda x: complex_one(x) if is_complex(x.dtype) else real(x)


exp = _entry(lax.exp, _mirrored(lax.exp), lambda dx, x, r: dx * r)
expm1 = _entry(lax.expm1, _through_zero(_mirrored(lax.expm1)), lambda dx, x, r: dx * (r + 1))
exp2 = _entry(lax.exp2, _exp2, lambda dx, x, r: dx * (r * np.log(2).astype(x.real.dtype)))
log1p = _entry(lax.log1p, _through_zero(lax.log1p), lambda dx, x, r: dx / (x + 1))
sqrt = _entry(lax.sqrt, _mirrored(lax.sqrt), lambda dx, x, r: dx * (1 / (2 * r)))
rsqrt = _entry(lax.rsqrt, lambda x: 1 / sqrt(x), lambda dx, x, r: dx * (-0.5 * (r * r * r)))
sin = _entry(lax.sin, _odd(lax.sin), lambda dx, x, r: dx * cos(x))
cos: Function = _entry(lax.cos, _even(_cos), lambda dx, x, r: dx * -sin(x))
tan = _entry(lax.tan, _odd(lax.tan), lambda dx, x, r: dx * (r * r + 1))
sinh = _entry(lax.sinh, _odd(_sinh), lambda dx, x, r: dx * cosh(x))
cosh: Function = _entry(lax.cosh, _even(lax.cosh), lambda dx, x, r: dx * sinh(x))
tanh = _entry(lax.tanh, _odd(lax.tanh), lambda dx, x, r: dx * (1 - r * r))
asin = _entry(lax.asin, _mirrored(lax.asin), lambda dx, x, r: dx * lax.rsqrt(1 - x * x))
acos = _entry(lax.acos, _acos, lambda dx, x, r: dx * -lax.rsqrt(1 - x * x))
atan = _entry(lax.atan, _odd(_atan), lambda dx, x, r: dx / (x * x + 1))
asinh = _entry(lax.asinh, _odd(lax.asinh), lambda dx, x, r: dx * lax.rsqrt(x * x + 1))
acosh = _entry(
    lax.acosh, _mirrored(lax.acosh), lambda dx, x, r: dx * (1 / (sqrt(x + 1) * sqrt(x + -1)))
)
atanh = _entry(lax.atanh, _odd(lax.atanh), lambda dx, x, r: dx / (1 - x * x))
