"""Largest and smallest: max, min, argmax, aminmax and their like.

`max()` and `amax` share the gradient among equals; `max(dim)` gives all of it to the index that it
returns. Where the result is NaN, `max()` shares the gradient among all NaN, `amax` makes it NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_complex, is_integral, scalar_name
from ...program.op import op
from ..elementwise.operands import BOOL, refuse
from ..shape.dimensions import wrap_dim
from .reduction import INT64, Dims, axes

Array = jax.Array

_SAVES = {"self": "*", "result": "*"}


class max_return(NamedTuple):
    """Result of `max` along a dim."""

    values: Array
    indices: Array


class min_return(NamedTuple):
    """Result of `min` along a dim."""

    values: Array
    indices: Array


class aminmax_return(NamedTuple):
    """Result of `aminmax`."""

    min: Array
    max: Array


def reduced_dim(name: str, input: Array, dim: int) -> int:
    """Return `dim` from the front; raise if it is empty."""
    dim = wrap_dim(dim, input.ndim)
    if input.ndim and input.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return dim


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def _picked(x: Array, values: Array, indices: Array, dim: int) -> Array:
    return values


@_picked.defjvp
def _picked_jvp(dim: int, primals: Any, tangents: Any) -> Any:
    _, values, indices = primals
    dx = tangents[0]
    # A mask is faster to transpose than a gather, whose transpose is a scatter.
    here = lax.broadcasted_iota(indices.dtype, dx.shape, dim) == indices
    return values, jnp.sum(jnp.where(here, dx, 0), dim, dtype=dx.dtype, keepdims=True)


def picked(x: Array, values: Array, indices: Array, dim: int) -> Array:
    """Return `values`, those of `x` at `indices` along `dim` (kept), with that gradient."""
    return values if is_integral(x.dtype) else _picked(x, values, indices, dim)


def finish(pair: tuple[Array, Array], dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Return values and indices without the dim that was kept, indices in int64."""
    values, indices = pair
    if not keepdim:
        values, indices = lax.squeeze(values, (dim,)), lax.squeeze(indices, (dim,))
    return values, indices.astype(INT64)


def _first(x: Array, extremum: Array, dim: int) -> Array:
    """Find the first index along `dim` (kept) of the extremum, or of NaN.

    Two plain reductions: XLA:CPU runs them ten times as fast as one of pairs, `lax.argmax`.
    """
    iota = lax.broadcasted_iota(np.dtype("int32"), x.shape, dim)
    hit = (x == extremum) | (x != x)
    return jnp.min(jnp.where(hit, iota, x.shape[dim]), dim, keepdims=True)


def _along(name: str, input: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Find the extremum and its first index along `dim`."""
    dim = reduced_dim(name, input, dim)
    if is_complex(input.dtype):
        raise RuntimeError(f"{name}(): does not support complex input")
    if input.ndim == 0:
        return input, jnp.zeros((), INT64)
    still = lax.stop_gradient(input)
    values = (jnp.max if name == "max" else jnp.min)(still, dim, keepdims=True)
    indices = _first(still, values, dim)
    return finish((picked(input, values, indices, dim), indices), dim, keepdim)


@op(name="max.dim", backward="MaxBackward0", saves={"indices": "*"})
def max_dim(input: Array, dim: int, keepdim: bool = False) -> max_return:
    """Take the largest along a dim, or NaN, and its first index."""
    return max_return(*_along("max", input, dim, keepdim))


@op(name="min.dim", backward="MinBackward0", saves={"indices": "*"})
def min_dim(input: Array, dim: int, keepdim: bool = False) -> min_return:
    """Take the smallest along a dim, or NaN, and its first index."""
    return min_return(*_along("min", input, dim, keepdim))


def _all(name: str, fn: Callable[..., Array], input: Array) -> Array:
    refuse(f"{name}_all", input.dtype, 3)
    if input.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    result = fn(lax.stop_gradient(input), keepdims=True)
    if not is_integral(input.dtype):
        result = _shared(input, result, tuple(range(input.ndim)), True)
    return result.reshape(())


@op(backward="MaxBackward1", saves=_SAVES)
def max(input: Array) -> Array:
    """Take the largest of all, or NaN; equals share the gradient."""
    return _all("max", jnp.max, input)


@op(backward="MinBackward1", saves=_SAVES)
def min(input: Array) -> Array:
    """Take the smallest of all, or NaN; equals share the gradient."""
    return _all("min", jnp.min, input)


def _many(name: str, kernel: str, fn: Any, input: Array, dim: Dims, keepdim: bool) -> Array:
    dims = axes(dim, input.ndim)
    if input.size == 0:
        if dim is None or dim == () or dim == []:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        for d in (dim,) if isinstance(dim, int) else dim:
            if input.ndim and not input.shape[d]:
                raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    refuse(kernel, input.dtype, 3)
    result: Array = fn(lax.stop_gradient(input), dims, keepdims=True)
    if not is_integral(input.dtype):
        result = _shared(input, result, dims, False)
    return result if keepdim else lax.squeeze(result, dims)


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _shared(x: Array, result: Array, dims: tuple[int, ...], nan: bool) -> Array:
    """Return `result`, known to be the extremum of `x` along `dims` (kept), with its gradient.

    With `nan`, NaN counts as equal to NaN.
    """
    return result


@_shared.defjvp
def _shared_jvp(dims: tuple[int, ...], nan: bool, primals: Any, tangents: Any) -> Any:
    x, result = primals
    here = x == result
    if nan:
        here |= (x != x) & (result != result)
    count = jnp.sum(here, dims, dtype=x.dtype, keepdims=True)
    # Where the result is NaN nothing equals it, and PyTorch's 0 / 0 is NaN everywhere; written
    # out, since XLA makes 0 of `False * NaN`.
    share = jnp.where(count == 0, jnp.nan, jnp.where(here, 1 / count, 0)).astype(x.dtype)
    return result, jnp.sum(tangents[0] * share, dims, dtype=x.dtype, keepdims=True)


@op(saves=_SAVES)
def amax(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """Take the largest along dims, or NaN; equals share the gradient."""
    return _many("amax", "max_values_cpu", jnp.max, input, dim, keepdim)


@op(saves=_SAVES)
def amin(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """Take the smallest along dims, or NaN; equals share the gradient."""
    return _many("amin", "min_values_cpu", jnp.min, input, dim, keepdim)


def _index(name: str, fn: Any, input: Array, dim: int | None, keepdim: bool) -> Array:
    if dim is not None:
        dim = reduced_dim(name, input, dim)
    elif input.size == 0:
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        )
    for refused, what in ((input.dtype == BOOL, "bool"), (is_complex(input.dtype), "complex")):
        if refused:
            raise RuntimeError(f"{name}(): does not support {what} input")
    if input.ndim == 0:
        return jnp.zeros((), INT64)
    x = lax.stop_gradient(input.reshape(-1) if dim is None else input)
    indices = _first(x, fn(x, dim or 0, keepdims=True), dim or 0).astype(INT64)
    if dim is None:
        return indices.reshape((1,) * input.ndim if keepdim else ())
    return indices if keepdim else lax.squeeze(indices, (dim,))


@op(differentiable=False)
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Find the first index of the largest, or of NaN; without `dim` in the flat input."""
    return _index("argmax", jnp.max, input, dim, keepdim)


@op(differentiable=False)
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Find the first index of the smallest, or of NaN; without `dim` in the flat input."""
    return _index("argmin", jnp.min, input, dim, keepdim)


@op(saves={"self": "*", "min": "*", "max": "*"})
def aminmax(input: Array, *, dim: int | None = None, keepdim: bool = False) -> aminmax_return:
    """Take the smallest and the largest; equals share the gradient."""
    if dim is None and input.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity."
        )
    if dim is not None and input.ndim and input.shape[wrap_dim(dim, input.ndim)] == 0:
        raise IndexError(
            f"aminmax: Expected reduction dim {wrap_dim(dim, input.ndim)} to have non-zero size."
        )
    if dim is not None and not input.ndim and is_complex(input.dtype):
        raise RuntimeError(f"aminmax not implemented for {scalar_name(input.dtype)}")
    refuse("aminmax_cpu", input.dtype, 3)
    dims = axes(dim, input.ndim)
    both = []
    for fn in (jnp.min, jnp.max):
        result = fn(lax.stop_gradient(input), dims, keepdims=True)
        if not is_integral(input.dtype):
            result = _shared(input, result, dims, False)
        both.append(result if keepdim else lax.squeeze(result, dims))
    return aminmax_return(*both)
