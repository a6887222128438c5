"""Gamma functions: polygamma, multivariate and incomplete."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from ...program.dtypes import is_complex, promote
from ...program.op import op
from ..elementwise.operands import refuse, two_floats, unsupported
from ..elementwise.unary import digamma
from .polygamma import _polygamma

Array = jax.Array


@op(name="polygamma", function=False, inplace=True, saves={"self": "*"})
def polygamma(input: Array, n: int) -> Array:
    """Compute the n-th derivative of `digamma`."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    (x,) = promote(input, to_float=True)
    if n == 0:
        return digamma(x)
    if is_complex(x.dtype):
        raise unsupported("trigamma" if n == 1 else "polygamma", x.dtype)
    return _polygamma(n, x)


@op(inplace=True, backward="MvlgammaBackward0", saves={"self": "*"})
def mvlgamma(input: Array, p: int) -> Array:
    """Compute the multivariate log-gamma function of dimension `p`."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype == bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    refuse("arange_cpu", input.dtype, 3)  # which makes the steps
    (x,) = promote(input, to_float=True)
    steps = jnp.arange(p, dtype=x.dtype) * -0.5
    constant = p * (p - 1) * 0.25 * np.log(np.pi)
    return special.gammaln(x[..., None] + steps).sum(-1) + jnp.full((), constant, x.dtype)


def _at_limits(value: Array, a: Array, x: Array, whole: int) -> Array:
    """Return an incomplete gamma function, where `a` is 0 or infinite as well.

    Args:
      whole: what it is where all lies below `x`.
    """
    value = jnp.where((a == 0) & (x > 0), whole, value)
    far = jnp.where(x == jnp.inf, jnp.nan, 1 - whole).astype(value.dtype)
    return jnp.where((a == jnp.inf) & (x >= 0), far, value)


@op(inplace=True, backward="IgammaBackward0", saves={"self": "other", "other": "other"})
def igamma(input: Array, other: Array) -> Array:
    """Compute the lower regularized incomplete gamma function."""
    a, b = two_floats("igamma_cpu", input, other)
    a = jax.lax.stop_gradient(a)
    return _at_limits(special.gammainc(a, b), a, b, 1)


@op(inplace=True, backward="IgammacBackward0", saves={"self": "other", "other": "other"})
def igammac(input: Array, other: Array) -> Array:
    """Compute the upper regularized incomplete gamma function."""
    a, b = two_floats("igammac_cpu", input, other)
    a = jax.lax.stop_gradient(a)
    return _at_limits(special.gammaincc(a, b), a, b, 0)
