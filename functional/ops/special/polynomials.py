"""Orthogonal polynomials of `torch.special`, by their recurrences.

PyTorch gives them no gradient. The degree is an integer, as a number or as a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import category, promote
from ...program.op import Decorator, ops_with
from ..elementwise.operands import unsupported
from ..shape.dimensions import broadcast_shapes

op: Decorator = ops_with(elementwise=True)

Array = jax.Array
Step = Callable[[Array, Array, Array, Array], Array]
Closed = Callable[[Array, Array], Array]


def _operands(name: str, input: Any, n: Any) -> tuple[Array, Array]:
    """Return both as floats of one shape; degrees are cut to integers, and what is none is -1."""
    broadcast_shapes(getattr(input, "shape", ()), getattr(n, "shape", ()))
    x, degree = promote(input, n, to_float=True)
    if category(x.dtype) == 3 or x.dtype.itemsize < 4:
        raise unsupported(f"{name}_cpu", x.dtype)
    x, degree = jnp.broadcast_arrays(x, degree)
    return x, jnp.where(jnp.isfinite(degree), jnp.trunc(degree), -1)


def _recur(x: Array, degree: Array, first: Array, step: Step) -> Array:
    """Count degrees up from 1, until the highest is reached or all is NaN."""
    one = jnp.ones_like(x)
    out = jnp.where(degree >= 1, first, jnp.where(degree >= 0, one, 0 * one))
    top = jnp.max(degree, initial=0)

    def more(carry: Any) -> Array:
        k, _, p, _ = carry
        return (k < top) & jnp.any((degree > k) & ~jnp.isnan(p))

    def advance(carry: Any) -> Any:
        k, q, p, out = carry
        new = step(k, x, p, q)
        return k + 1, p, new, jnp.where(degree >= k + 1, new, out)

    return lax.while_loop(more, advance, (jnp.ones((), x.dtype), one, first, out))[3]


def _entry(
    name: str,
    first: Callable[[Array], Array],
    step: Step,
    *,
    shift: bool = False,
    inside: Closed | None = None,
    at_one: tuple[Closed, Closed] | None = None,
    limit: bool = False,
) -> None:
    """Enter one polynomial.

    Args:
      step: `step(k, x, p, q)` is the polynomial of degree k + 1 from those of k and k - 1.
      shift: the argument is `2 x - 1`.
      inside: `inside(n, angle)` is the value at `cos(angle)`, taken from degree 9 on.
      at_one: `(sign, n)` to the value at 1 and at -1.
      limit: degrees above 512 (float64) or 128 are NaN, as PyTorch's Hermite polynomials.
    """

    def body(input: Any, n: Any) -> Array:
        x, degree = _operands(name, input, n)
        x = 2 * x - 1 if shift else x
        apart = jnp.zeros(x.shape, bool)
        value = x
        if inside is not None:
            apart = (jnp.abs(x) < 1) & (degree > 8)
            value = inside(degree, jnp.arccos(jnp.where(apart, x, 0)))
        if at_one is not None:
            sign = 1 - 2 * jnp.mod(degree, 2)
            edge = (jnp.abs(x) == 1) & (degree >= 0)
            ends = jnp.where(x > 0, at_one[0](sign, degree), at_one[1](sign, degree))
            apart, value = apart | edge, jnp.where(edge, ends, value)
        if limit:
            high = degree > (512 if x.dtype == np.float64 else 128)
            apart, value = apart | high, jnp.where(high, jnp.nan, value)
        out = _recur(x, jnp.where(apart, 0, degree), first(x), step)
        return jnp.where(apart, value, out).astype(x.dtype)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"Compute the {name.replace('_', ' ')} of degree `n`, an integer."
    op(namespace="special", method=False, differentiable=False)(body)


def _one(sign: Array, n: Array) -> Array:
    return jnp.ones_like(n)


def _odd(sign: Array, n: Array) -> Array:
    return 2 * n + 1


def _chebyshev(prefix: str, shift: bool) -> None:
    def enter(kind: str, first: Any, inside: Closed, at_one: Any) -> None:
        _entry(
            prefix + kind, first, lambda k, x, p, q: 2 * x * p - q,
            shift=shift, inside=inside, at_one=at_one,
        )  # fmt: skip

    enter("t", lambda x: x, lambda n, a: jnp.cos(n * a), (_one, lambda s, n: s))
    enter(
        "u", lambda x: 2 * x, lambda n, a: jnp.sin((n + 1) * a) / jnp.sin(a),
        (lambda s, n: n + 1, lambda s, n: s * (n + 1)),
    )  # fmt: skip
    enter(
        "v", lambda x: 2 * x - 1, lambda n, a: jnp.cos((n + 0.5) * a) / jnp.cos(a / 2),
        (_one, lambda s, n: s * _odd(s, n)),
    )  # fmt: skip
    enter(
        "w", lambda x: 2 * x + 1, lambda n, a: jnp.sin((n + 0.5) * a) / jnp.sin(a / 2),
        (_odd, lambda s, n: s),
    )  # fmt: skip


_chebyshev("chebyshev_polynomial_", False)
_chebyshev("shifted_chebyshev_polynomial_", True)

_entry(
    "hermite_polynomial_h", lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q, limit=True,
)  # fmt: skip
_entry("hermite_polynomial_he", lambda x: x, lambda k, x, p, q: x * p - k * q, limit=True)
_entry(
    "laguerre_polynomial_l", lambda x: 1 - x,
    lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
)  # fmt: skip
_entry(
    "legendre_polynomial_p", lambda x: x,
    lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    at_one=(_one, lambda s, n: s),
)  # fmt: skip
