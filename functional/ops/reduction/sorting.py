"""Order: sort, topk, kthvalue, median, mode. NaN is larger than all numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_complex
from ...program.op import op
from ..elementwise.operands import BOOL, refuse, with_jvp
from ..shape.dimensions import wrap_dim
from .extrema import finish, picked, reduced_dim
from .reduction import INT64

Array = jax.Array


class sort_return(NamedTuple):
    """Result of `sort`."""

    values: Array
    indices: Array


class topk_return(NamedTuple):
    """Result of `topk`."""

    values: Array
    indices: Array


class kthvalue_return(NamedTuple):
    """Result of `kthvalue`."""

    values: Array
    indices: Array


class median_return(NamedTuple):
    """Result of `median` along a dim."""

    values: Array
    indices: Array


class nanmedian_return(NamedTuple):
    """Result of `nanmedian` along a dim."""

    values: Array
    indices: Array


class mode_return(NamedTuple):
    """Result of `mode`."""

    values: Array
    indices: Array


def _sorted(x: Array, dim: int, descending: bool = False) -> tuple[Array, Array]:
    """Return values and indices in order; equals stay in their order."""
    if x.ndim == 0:
        return x, jnp.zeros((), INT64)
    iota = lax.broadcasted_iota(np.dtype("int32"), x.shape, dim)
    if descending:
        x, iota = lax.rev(x, (dim,)), lax.rev(iota, (dim,))
    values, indices = lax.sort((x, iota), dimension=dim, is_stable=True, num_keys=1)
    if descending:
        values, indices = lax.rev(values, (dim,)), lax.rev(indices, (dim,))
    return values, indices.astype(INT64)


def _sort(input: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    dim = wrap_dim(dim, input.ndim)
    if is_complex(input.dtype):
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    return _sorted(input, dim, descending)


@op(saves={"indices": "*"}, residuals=True)
def sort(
    input: Array, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> sort_return:
    """Sort along a dim; always stable."""
    return sort_return(*_sort(input, dim, descending))


@op(differentiable=False)
def argsort(
    input: Array, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Array:
    """Find the indices that sort along a dim; always stable."""
    return _sort(lax.stop_gradient(input), dim, descending)[1]


@op(saves={"indices": "*"}, residuals=True)
def topk(
    input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> topk_return:
    """Take the k largest or smallest along a dim, in order."""
    dim = wrap_dim(dim, input.ndim)
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if is_complex(input.dtype):
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if input.dtype == BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if input.ndim == 0:
        return topk_return(input, jnp.zeros((), INT64))
    if largest and input.dtype == np.dtype("float32"):
        values, indices = lax.top_k(jnp.moveaxis(input, dim, -1), k)
        values, indices = jnp.moveaxis(values, -1, dim), jnp.moveaxis(indices, -1, dim)
        return topk_return(values, indices.astype(INT64))
    values, indices = _sorted(input, dim, largest)
    return topk_return(
        lax.slice_in_dim(values, 0, k, axis=dim), lax.slice_in_dim(indices, 0, k, axis=dim)
    )


def _at(input: Array, dim: int, position: Any, keepdim: bool) -> tuple[Array, Array]:
    """Return the element at a position of the order (an int, or indices with `dim` kept)."""
    if input.ndim == 0:
        return input, jnp.zeros((), INT64)
    values, indices = _sorted(lax.stop_gradient(input), dim)
    if isinstance(position, int):
        pair = [lax.slice_in_dim(a, position, position + 1, axis=dim) for a in (values, indices)]
    else:
        pair = [jnp.take_along_axis(a, position, dim) for a in (values, indices)]
    return finish((picked(input, pair[0], pair[1], dim), pair[1]), dim, keepdim)


@op(saves={"indices": "*"}, residuals=True)
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> kthvalue_return:
    """Take the k-th smallest along a dim, counted from 1."""
    dim = reduced_dim("kthvalue", input, dim)
    if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    refuse("kthvalue_cpu", input.dtype, 0, 3)
    return kthvalue_return(*_at(input, dim, k - 1, keepdim))


def _middle(input: Array, dim: int, keepdim: bool, skip_nan: bool) -> tuple[Array, Array]:
    """Return the lower of the two in the middle along `dim`; NaN if there is one and it counts."""
    if input.ndim == 0:
        return input, jnp.zeros((), INT64)
    if input.dtype.kind in "iu":
        return _at(input, dim, (input.shape[dim] - 1) // 2, keepdim)
    nan = input != input
    numbers = jnp.sum(~nan, dim, dtype=INT64, keepdims=True)
    if skip_nan:
        return _at(input, dim, jnp.maximum(numbers - 1, 0) // 2, keepdim)
    half = (input.shape[dim] - 1) // 2
    # NaN sorts last, the first of them at the place of their number.
    position = jnp.where(numbers < input.shape[dim], numbers, half)
    return _at(input, dim, position, keepdim)


@op(name="median.dim", backward="MedianBackward1", saves={"indices": "*"},
    residuals=True)  # fmt: skip
def median_dim(input: Array, dim: int, keepdim: bool = False) -> median_return:
    """Take the lower median along a dim, or NaN, and its index."""
    dim = reduced_dim("median", input, dim)
    refuse("median_out", input.dtype, 0, 3)
    return median_return(*_middle(input, dim, keepdim, False))


@op(name="nanmedian.dim", backward="NanmedianBackward1", saves={"indices": "*"},
    residuals=True)  # fmt: skip
def nanmedian_dim(input: Array, dim: int, keepdim: bool = False) -> nanmedian_return:
    """Take the lower median of all but NaN along a dim, and its index."""
    dim = reduced_dim("median", input, dim)
    refuse("median_out", input.dtype, 0, 3)
    return nanmedian_return(*_middle(input, dim, keepdim, True))


def _shared_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    """Share the gradient among all elements equal to the result."""
    x = lax.stop_gradient(primals[0])
    same = (x == result) | ((x != x) & (result != result))
    return jnp.sum(jnp.where(same, tangents[0], 0)) / jnp.sum(same, dtype=x.dtype)


def _median_of(skip_nan: bool) -> Any:
    def value(x: Array) -> Array:
        return _middle(x.reshape(-1), 0, False, skip_nan)[0]

    return with_jvp(value, _shared_tangent), value


_MEDIANS = {skip_nan: _median_of(skip_nan) for skip_nan in (False, True)}


def _median(input: Array, skip_nan: bool) -> Array:
    refuse("median_cpu", input.dtype, 0, 3)
    if input.size == 0:
        if input.dtype.kind in "iu":
            return jnp.full((), np.iinfo(input.dtype).min, input.dtype)
        return jnp.full((), jnp.nan, input.dtype)
    smooth, plain = _MEDIANS[skip_nan]
    return (plain if input.dtype.kind in "iu" else smooth)(input)


@op(saves={"self": "*", "result": "*"}, residuals=True)
def median(input: Array) -> Array:
    """Take the lower median of all, or NaN; equals share the gradient."""
    return _median(input, False)


@op(saves={"self": "*", "result": "*"}, residuals=True)
def nanmedian(input: Array) -> Array:
    """Take the lower median of all but NaN; equals share the gradient."""
    return _median(input, True)


@op(saves={"indices": "*"}, residuals=True)
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> mode_return:
    """Take the most frequent along a dim, the smallest of several, and its last index."""
    dim = reduced_dim("mode", input, dim)
    refuse("mode_cpu", input.dtype, 3)
    if input.ndim == 0:
        return mode_return(input, jnp.zeros((), INT64))
    order, _ = _sorted(lax.stop_gradient(input), dim)
    head = lax.slice_in_dim(order, 0, 1, axis=dim)
    before = jnp.concatenate([head, lax.slice_in_dim(order, 0, -1, axis=dim)], dim)
    iota = lax.broadcasted_iota(np.dtype("int32"), order.shape, dim)
    start = lax.cummax(jnp.where(order != before, iota, 0), dim)
    position = jnp.expand_dims(lax.argmax(iota - start, dim, np.dtype("int32")), dim)
    return mode_return(*_at(input, dim, position, keepdim))
