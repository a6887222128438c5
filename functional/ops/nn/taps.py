"""Weighted sums of a few places along a dim: what resampling and uneven averages are made of.

A product with the matrix of the weights would be as fast, but its zeros times one NaN are NaN, and
that NaN would spread over all that the matrix makes. The gradient of gathered taps, on the other
hand, would be a slow scatter. So this is a primitive of its own: its transpose gathers too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Array = jax.Array

_UNROLLED = 8  # taps to add one by one; a product with a matrix is faster than more of them


class Taps(NamedTuple):
    """A sparse matrix `(rows, columns)`: hashable, for it is a parameter of equations."""

    shape: tuple[int, int]
    rows: tuple[int, ...]  # not decreasing
    columns: tuple[int, ...]
    weights: tuple[float, ...]

    def transposed(self) -> Taps:
        """Return the map of gradients."""
        order = np.argsort(np.asarray(self.columns, np.int64), kind="stable").tolist()
        fields = ([x[i] for i in order] for x in (self.columns, self.rows, self.weights))
        rows, columns, weights = map(tuple, fields)
        return Taps(self.shape[::-1], rows, columns, weights)

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return columns, weights and whether there is a tap, each `(rows, most taps of a row)`."""
        rows = np.asarray(self.rows, np.int64)
        counts = np.bincount(rows, minlength=self.shape[0])
        at = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (self.shape[0], int(counts.max(initial=1)))
        index, weights, there = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, bool)
        index[rows, at], weights[rows, at], there[rows, at] = self.columns, self.weights, True
        return index, weights, there


def make(size: int, index: np.ndarray, weights: np.ndarray, there: Any = True) -> Taps:
    """Make taps at `index` with `weights`, both `(rows, taps)`, where they are `there`."""
    index, weights, there = np.broadcast_arrays(index, weights, there)
    rows = np.nonzero(there)[0]
    fields = (rows, index[there], weights[there].astype(np.float64))
    return Taps((len(index), size), *(tuple(x.tolist()) for x in fields))


def as_matrix(taps: Taps) -> np.ndarray:
    """Return the weights as rows `(out, size)`."""
    matrix = np.zeros(taps.shape)
    np.add.at(matrix, (np.asarray(taps.rows), np.asarray(taps.columns)), taps.weights)
    return matrix


def weighted(x: Array, axis: int, taps: Taps) -> Array:
    """Map `axis` of `x` by `taps`: nothing but taps of a place reaches it."""
    return _weighted.bind(x, axis=axis, taps=taps)  # type: ignore[no-any-return]


def _sums(x: Array, axis: int, taps: Taps) -> Array:
    index, weights, there = taps.table()
    if not x.size:
        return jnp.zeros((*x.shape[:axis], len(index), *x.shape[axis + 1 :]), x.dtype)
    if index.shape[1] > _UNROLLED:
        return jax.lax.cond(
            jnp.isfinite(x).all(),
            lambda: _product(x, axis, taps),
            lambda: _reduced(x, axis, index, weights, there),
        )
    shape = (-1,) + (1,) * (x.ndim - axis - 1)
    total: Any = None
    for k in range(index.shape[1]):
        part = jnp.take(x, index[:, k], axis)
        part = part * jnp.asarray(weights[:, k].reshape(shape), x.dtype)
        if not there[:, k].all():
            part = jnp.where(there[:, k].reshape(shape), part, jnp.zeros((), x.dtype))
        total = part if total is None else total + part
    return total


def _product(x: Array, axis: int, taps: Taps) -> Array:
    matrix = jnp.asarray(as_matrix(taps), x.dtype)
    return jnp.moveaxis(jnp.tensordot(x, matrix, ((axis,), (1,))), -1, axis)


def _reduced(
    x: Array, axis: int, index: np.ndarray, weights: np.ndarray, there: np.ndarray
) -> Array:
    shape = index.shape + (1,) * (x.ndim - axis - 1)
    parts = jnp.take(x, index, axis) * jnp.asarray(weights.reshape(shape), x.dtype)
    return jnp.where(there.reshape(shape), parts, jnp.zeros((), x.dtype)).sum(axis + 1)


def _batched(args: Any, dims: Any, *, axis: int, taps: Taps) -> tuple[Array, int]:
    x = jnp.moveaxis(args[0], dims[0], 0)
    return weighted(x, axis + 1, taps), 0


def _transposed(ct: Any, x: Any, *, axis: int, taps: Taps) -> list[Any]:
    return [weighted(ct, axis, taps.transposed())]


_weighted = Primitive("weighted_taps")
_weighted.def_impl(jax.jit(_sums, static_argnames=("axis", "taps")))
_weighted.def_abstract_eval(
    lambda x, *, axis, taps: x.update(
        shape=(*x.shape[:axis], taps.shape[0], *x.shape[axis + 1 :]), weak_type=False
    )
)
ad.deflinear2(_weighted, _transposed)
batching.primitive_batchers[_weighted] = _batched
mlir.register_lowering(_weighted, mlir.lower_fun(_sums, multiple_results=False))
