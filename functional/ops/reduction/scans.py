"""Running reductions along a dim: cumsum, cummax and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast, is_complex, is_integral
from ...program.op import Decorator, ops_with
from ..elementwise.operands import BOOL, NOTHING, refuse, unsupported, with_jvp
from ..shape.dimensions import wrap_dim
from .reduction import INT64

op: Decorator = ops_with(moves=True)

Array = jax.Array


class cummax_return(NamedTuple):
    """Result of `cummax`."""

    values: Array
    indices: Array


class cummin_return(NamedTuple):
    """Result of `cummin`."""

    values: Array
    indices: Array


def _scan(name: str, fn: Callable[..., Array], input: Array, dim: int, dtype: Any) -> Array:
    dim = wrap_dim(dim, input.ndim)
    if dtype is None and is_integral(input.dtype):
        dtype = INT64
    x = input if dtype is None else cast(input, dtype)
    if x.dtype == bool and x.ndim and x.size:
        raise unsupported(f"{name}_out_cpu", x.dtype)
    return fn(x, dim) if x.ndim and x.dtype != bool else x


@op(inplace=True)
def cumsum(input: Array, dim: int, *, dtype: Any = None) -> Array:
    """Add up along a dim; integers in int64."""
    return _scan("cumsum", lax.cumsum, input, dim, dtype)


@op(saves={"self": "*", "result": "*"}, inplace=True)
def cumprod(input: Array, dim: int, *, dtype: Any = None) -> Array:
    """Multiply up along a dim; integers in int64. The gradient is exact at zeros."""
    return _scan("cumprod", _products, input, dim, dtype)


def _products(x: Array, dim: int) -> Array:
    def value(x: Array) -> Array:
        return lax.cumprod(x, dim)

    def along(result: Array, given: Any, moving: Any) -> Any:
        # What JAX differentiates adds its products to zeros: the result lost the sign of -0.0.
        return NOTHING if moving[0] is NOTHING else jax.jvp(value, given, moving)[1]

    return with_jvp(value, along)(x)


@op(saves={"self": "*", "result": "*"}, residuals=True)
def logcumsumexp(input: Array, dim: int) -> Array:
    """Take the logarithm of running sums of exponentials, without overflow."""
    dim = wrap_dim(dim, input.ndim)
    refuse("logcumsumexp_out_cpu", input.dtype, 0, 1)
    if not input.ndim:
        return input
    if is_complex(input.dtype):
        return _whole_turns(input, lax.cumlogsumexp(input, dim), dim)
    # From infinity on the sum is that, and what is added has no part in it: JAX's derivative is
    # made of differences of infinities there.
    infinite = jnp.isposinf(input)
    reached = lax.cummax(infinite.astype(np.int8), dim) > 0
    sums = lax.cumlogsumexp(jnp.where(infinite, -jnp.inf, input), dim)
    at_infinity = jnp.inf + lax.cumsum(_undefined(input), dim)
    return jnp.where(reached & ~jnp.isnan(sums), at_infinity, sums)


# Zeros, whose derivative is NaN where the argument is infinite, as PyTorch's is.
_undefined = with_jvp(
    lambda x: jnp.zeros_like(x),
    lambda r, x, dx: (
        dx[0] if dx[0] is NOTHING else jnp.where(jnp.isposinf(x[0]), jnp.nan, 0) * dx[0]
    ),
)


def _log(x: Array) -> Array:
    """Compute the logarithm: infinite wherever one part is, even if the other is NaN."""
    infinite = jnp.isinf(x.real) | jnp.isinf(x.imag)
    size = jnp.where(infinite, jnp.inf, jnp.log(x).real)
    return lax.complex(size, jnp.arctan2(x.imag, x.real))


def _whole_turns(x: Array, sums: Array, dim: int) -> Array:
    """Return `sums` with the angles that PyTorch comes to by adding one by one, past pi.

    Where there was an infinity, or an angle so large that its exponential is lost, JAX's sums are
    NaN from end to end: there they are PyTorch's own.
    """

    def add(before: Array, new: Array) -> tuple[Array, Array]:
        low = before.real < new.real
        small, large = jnp.where(low, before, new), jnp.where(low, new, before)
        more = jnp.log1p(jnp.exp(small - large))
        after = large + jnp.where(jnp.isneginf(small.real), 0, more)
        after = jnp.where(jnp.isneginf(large.real), before, after)  # no angle of nothing
        after = jnp.where(jnp.isposinf(small.real), _log(jnp.exp(small) + jnp.exp(large)), after)
        after = jnp.where(jnp.isnan(before) | jnp.isnan(new), undefined, after)
        return after, after

    undefined = jnp.asarray(complex(np.nan, np.nan), x.dtype)
    along = jnp.moveaxis(lax.stop_gradient(x), dim, 0)
    start = jnp.full(along.shape[1:], -jnp.inf, x.dtype)
    one_by_one = jnp.moveaxis(lax.scan(add, start, along)[1], 0, dim)
    turns = jnp.round((one_by_one - lax.stop_gradient(sums)).imag / (2 * np.pi))
    turns = jnp.where(jnp.isfinite(turns), turns, 0)
    turned = sums + lax.complex(jnp.zeros_like(turns), turns * (2 * np.pi))
    return jnp.where(jnp.isfinite(sums), turned, one_by_one)


def _extreme(name: str, fn: Callable[..., Array], input: Array, dim: int) -> tuple[Array, Array]:
    """Find the running extremum and the last index that it is found at."""
    if not input.ndim and dim not in (0, -1):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    dim = wrap_dim(dim, input.ndim)
    refuse(f"{name}_cpu", input.dtype, 3)
    if input.ndim == 0:
        return input, jnp.zeros((), INT64)
    still = lax.stop_gradient(input)
    raw = still.astype(np.dtype("uint8")) if still.dtype == BOOL else still
    hit = (raw == fn(raw, dim)) | (raw != raw)
    iota = lax.broadcasted_iota(INT64, input.shape, dim)
    indices = lax.cummax(jnp.where(hit, iota, 0), dim)
    return jnp.take_along_axis(input, indices, dim), indices


@op(saves={"self": "*", "indices": "*"})
def cummax(input: Array, dim: int) -> cummax_return:
    """Take the largest so far, or NaN, and its last index."""
    return cummax_return(*_extreme("cummax", lax.cummax, input, dim))


@op(saves={"self": "*", "indices": "*"})
def cummin(input: Array, dim: int) -> cummin_return:
    """Take the smallest so far, or NaN, and its last index."""
    return cummin_return(*_extreme("cummin", lax.cummin, input, dim))
