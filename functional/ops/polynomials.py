"""Orthogonal polynomials of `torch.special`, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._dtypes import promote
from .._op import op

Array = jax.Array
Step = Callable[[Array, Array, Array, Array], Array]

_MOST = 128  # degrees known only to the data are computed up to here


def _entry(name: str, first: Callable[[Array], Array], step: Step, shift: bool = False) -> None:
    """`step(k, x, p, q)` is the polynomial of degree k + 1 from those of k and k - 1."""

    def body(input: Any, n: Any) -> Array:
        x, degree = promote(input, n, to_float=True)
        x, degree = jnp.broadcast_arrays(x, jnp.trunc(degree))
        x = 2 * x - 1 if shift else x
        one = jnp.ones_like(x)

        def advance(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            q, p, out = carry
            new = step(k.astype(x.dtype), x, p, q)
            return p, new, jnp.where(degree >= k + 1, new, out)

        start = first(x)
        out = jnp.where(degree >= 1, start, jnp.where(degree >= 0, one, 0 * one))
        top = int(n) if isinstance(n, (int, float)) else _MOST
        return jax.lax.fori_loop(1, max(top, 1), advance, (one, start, out))[2]

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"The {name.replace('_', ' ')} of degree `n`, an integer."
    op(namespace="special", method=False, differentiable=False)(body)


def _chebyshev(k: Array, x: Array, p: Array, q: Array) -> Array:
    return 2 * x * p - q


for _shifted in (False, True):
    _prefix = "shifted_chebyshev_polynomial_" if _shifted else "chebyshev_polynomial_"
    for _kind, _first in {
        "t": lambda x: x,
        "u": lambda x: 2 * x,
        "v": lambda x: 2 * x - 1,
        "w": lambda x: 2 * x + 1,
    }.items():
        _entry(_prefix + _kind, _first, _chebyshev, _shifted)
_entry("hermite_polynomial_h", lambda x: 2 * x, lambda k, x, p, q: 2 * (x * p - k * q))
_entry("hermite_polynomial_he", lambda x: x, lambda k, x, p, q: x * p - k * q)
_entry(
    "laguerre_polynomial_l", lambda x: 1 - x,
    lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
)  # fmt: skip
_entry(
    "legendre_polynomial_p", lambda x: x,
    lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
)  # fmt: skip


def _integral(name: str, fn: Callable[[np.ndarray, Array], Array], points: int, doc: str) -> None:
    """A Bessel function by the midpoint rule on its integral over half a period."""
    angle = (np.arange(points) + 0.5) * np.pi / points

    def body(input: Array) -> Array:
        (x,) = promote(input, to_float=True)
        return fn(angle.astype(x.dtype), x[..., None]).mean(-1).astype(x.dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    op(namespace="special", method=False, differentiable=False)(body)


_integral("bessel_j0", lambda a, x: jnp.cos(x * np.sin(a)), 64, "Bessel function J0.")
_integral("bessel_j1", lambda a, x: jnp.cos(a - x * np.sin(a)), 64, "Bessel function J1.")


@op(namespace="special", method=False, differentiable=False)
def modified_bessel_i0(input: Array) -> Array:
    """Modified Bessel function I0."""
    return jax.scipy.special.i0(*promote(input, to_float=True))


@op(namespace="special", method=False, differentiable=False)
def modified_bessel_i1(input: Array) -> Array:
    """Modified Bessel function I1."""
    return jax.scipy.special.i1(*promote(input, to_float=True))


@op(namespace="special", method=False, differentiable=False)
def spherical_bessel_j0(input: Array) -> Array:
    """`sin(x) / x`."""
    (x,) = promote(input, to_float=True)
    return jnp.sinc(x / np.pi)
