"""Derivatives of the digamma function, which other functions are differentiated by."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

Array = jax.Array


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _polygamma(n: int, x: Array) -> Array:
    if n == 1:
        wide = x.astype(np.promote_types(x.dtype, np.float32))
        return _trigamma(wide).astype(x.dtype)
    # JAX's is for positive numbers: negative ones are moved there by the recurrence.
    steps = jnp.arange(16, dtype=x.dtype)
    left = x < 0.5
    terms = (jnp.where(left, x, 1)[..., None] + steps) ** -(n + 1)
    factor = jnp.full((), (-1) ** n * math.factorial(n), x.dtype)
    value = special.polygamma(n, jnp.where(left, x + 16, x))
    value = jnp.where(left, value - factor * terms.sum(-1), value)
    # PyTorch's is by the zeta function, which takes minus infinity for a pole.
    return jnp.where(x == jnp.inf, jnp.nan, jnp.where(x == -jnp.inf, -jnp.inf * factor, value))


def _trigamma(x: Array) -> Array:
    """Compute by reflection, whose poles PyTorch misses by the rounding of pi, and an expansion."""
    left = x < 0.5
    sine = jnp.sin(jnp.full((), np.pi, x.dtype) * x)
    y = jnp.where(left, 1 - x, x)
    near = ((y[..., None] + jnp.arange(6, dtype=x.dtype)) ** -2).sum(-1)
    y = y + 6
    square = 1 / (y * y)
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42))
    near = near + (1 + 1 / (2 * y) + square * series) / y
    return jnp.where(left, np.pi**2 / (sine * sine) - near, near)


@_polygamma.defjvp
def _polygamma_jvp(n: int, primals: tuple[Array], tangents: tuple[Array]) -> Any:
    return _polygamma(n, *primals), _polygamma(n + 1, *primals) * tangents[0]


def trigamma(x: Array) -> Array:
    """Compute the second derivative of `lgamma`."""
    return _polygamma(1, x)
