"""Complex functions with branch cuts: on a cut the sign of zero tells the side, as in C99.

XLA's own forget that sign; and JAX's derivative of `acosh` is of the other branch in the left half
plane. The derivatives here are PyTorch's formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._dtypes import is_complex
from ._elementwise import with_jvp

Array = jax.Array


def _mirrored(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`fn` with `fn(conj(x)) = conj(fn(x))`, below a cut along the real axis too."""

    def value(x: Array) -> Array:
        below = jnp.signbit(x.imag)
        upper = fn(lax.complex(x.real, jnp.abs(x.imag)))
        return jnp.where(below, jnp.conj(upper), upper)

    return value


def _odd(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`fn` with `fn(-x) = -fn(x)`, left of a cut along the imaginary axis too."""

    def value(x: Array) -> Array:
        left = jnp.signbit(x.real)
        right = fn(lax.complex(jnp.abs(x.real), jnp.where(left, -x.imag, x.imag)))
        return jnp.where(left, -right, right)

    return value


def _entry(
    real: Callable[[Array], Array], value: Callable[[Array], Array], slope: Callable[..., Any]
) -> Callable[[Array], Array]:
    complex_one = with_jvp(value, lambda r, x, dx: dx[0] * slope(x[0], r))
    return lambda x: complex_one(x) if is_complex(x.dtype) else real(x)


sqrt = _entry(lax.sqrt, _mirrored(lax.sqrt), lambda x, r: 1 / (2 * r))
asin = _entry(lax.asin, _mirrored(lax.asin), lambda x, r: lax.rsqrt(1 - x * x))
acos = _entry(lax.acos, _mirrored(lax.acos), lambda x, r: -lax.rsqrt(1 - x * x))
asinh = _entry(lax.asinh, _odd(lax.asinh), lambda x, r: lax.rsqrt(x * x + 1))
acosh = _entry(lax.acosh, _mirrored(lax.acosh), lambda x, r: 1 / (sqrt(x + 1) * sqrt(x + -1)))
