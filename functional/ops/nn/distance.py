"""Similarities and distances of vectors."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import (
    cast,
    is_complex,
    is_floating,
    promote,
    real_of,
    result_type,
    scalar_name,
)
from ...program.op import op
from .checks import broadcast, wide, wrap_dim

Array = jax.Array

ALSO_FUNCTIONAL = ("cosine_similarity", "pairwise_distance")


def _root(total: Array) -> Array:
    """Compute the square root with gradient 0 at 0."""
    positive = total > 0
    one = jnp.ones((), total.dtype)
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, total, one)), total)


@op(method=False, backward="SumBackward1", saves={"x1": "*", "x2": "*"}, numbers=("eps",))
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: Any = 1e-8) -> Array:
    """Take the cosine of the angle along `dim`; norms are not below `eps`."""
    dtype = result_type(x1, x2)
    if not is_floating(dtype):
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_name(dtype)}"
        )
    shape = broadcast(x1, x2)
    dim = wrap_dim(dim, len(shape))
    scalar = not shape
    shape = shape or (1,)
    a, b = (jnp.broadcast_to(wide(x), shape) for x in promote(x1, x2))
    units = []
    for x in (a, b):
        norm = _root((x * x).sum(dim, keepdims=True))
        # The clamp is outside of PyTorch's graph.
        clamped = jnp.maximum(norm, cast(eps, norm.dtype))
        units.append(x / (norm + jax.lax.stop_gradient(clamped - norm)))
    out = cast((units[0] * units[1]).sum(dim), dtype)
    return out.reshape(()) if scalar else out


@op(method=False, backward="NormBackward1", saves={"x1": "*", "x2": "*"}, numbers=("eps",))
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: Any = 1e-6, keepdim: bool = False
) -> Array:
    """Take the p-norm of `x1 - x2 + eps` along the last dim."""
    broadcast(x1, x2)
    a, b = promote(x1, x2, to_float=True)
    d = wide(a - b + cast(eps, a.dtype))
    if is_complex(d.dtype):
        d = jnp.abs(d)
    scalar = not d.shape
    d = d.reshape(d.shape or (1,))
    if p == 2:
        y = _root((d * d).sum(-1, keepdims=keepdim))
    else:
        size = d * jnp.sign(d)
        if p == 1:
            y = size.sum(-1, keepdims=keepdim)
        elif math.isinf(p):
            y = (size.max if p > 0 else size.min)(-1, keepdims=keepdim)
        elif p == 0:
            y = (size != 0).astype(d.dtype).sum(-1, keepdims=keepdim)
        else:
            zero = size == 0  # not NaN, which stays
            safe = jnp.where(zero, jnp.ones((), d.dtype), size)
            powers = jnp.where(zero, jnp.zeros((), d.dtype), safe**p)
            total = powers.sum(-1, keepdims=keepdim)
            none = total == 0
            roots = jnp.where(none, jnp.ones((), d.dtype), total) ** (1 / p)
            y = jnp.where(none, jnp.zeros((), d.dtype), roots)
    return cast(y.reshape(()) if scalar else y, real_of(a.dtype))
