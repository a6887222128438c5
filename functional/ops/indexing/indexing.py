"""Ops that read or write at positions held in index tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import cast, scalar_name
from ...program.op import Fault, op
from ..elementwise.operands import faults_of_fit
from ..shape import dimensions

Array = jax.Array
Indices = Sequence[Array | None]
INT32_INT64 = ("int32", "int64")
# Indices out of range are reported by `check`, so programs need not guard against them.
IN_BOUNDS = "promise_in_bounds"


def outside(index: Array, size: int, message: str, error: type[Exception] = IndexError) -> Fault:
    """Return the fault of indices not in [0, size)."""
    return Fault((index < 0) | (index >= size), error, message, index)


def outside_wrapped(
    index: Array, size: int, message: str, error: type[Exception] = IndexError
) -> Fault:
    """Return the fault of indices not in [-size, size)."""
    return Fault((index < -size) | (index >= size), error, message, index)


# x[i, j] ---------------------------------------------------------------------------------------


def _index_key(input: Array, indices: Indices) -> tuple[tuple[Any, ...], dimensions.Shape]:
    """Return the key for JAX and the shape of `input[key]`; run all checks that need no values."""
    if len(indices) > input.ndim:
        raise IndexError(
            f"too many indices for tensor of dimension {input.ndim} (got {len(indices)})"
        )
    arrays = [i for i in indices if i is not None]
    if any(i.dtype.name not in INT32_INT64 for i in arrays):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    try:
        picked = jnp.broadcast_shapes(*(i.shape for i in arrays))
    except ValueError:
        shapes = ", ".join(str(list(i.shape)) for i in arrays)
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes " + shapes
        ) from None
    dims = [dim for dim, i in enumerate(indices) if i is not None]
    if math.prod(picked) and any(input.shape[dim] == 0 for dim in dims):
        raise IndexError("index is out of bounds for dimension with size 0")
    key = tuple(slice(None) if i is None else i for i in indices)
    rest = [n for dim, n in enumerate(input.shape) if dim not in dims]
    adjacent = bool(dims) and dims[-1] - dims[0] + 1 == len(dims)
    at = dims[0] if adjacent else 0
    return key, (*rest[:at], *picked, *rest[at:])


def _check_index(input: Array, indices: Indices, *args: Any, **kwargs: Any) -> list[Fault]:
    faults: list[Fault] = []
    if any(n == 0 for n, i in itertools.zip_longest(input.shape, indices) if i is None):
        return faults  # PyTorch's kernel does not run where there is nothing to take
    for dim, index in enumerate(indices):
        if index is not None and index.dtype != bool:
            # PyTorch counts the index tensors here, not the dims they index.
            message = (
                f"index {{value}} is out of bounds for dimension {len(faults)} with size "
                f"{input.shape[dim]}"
            )
            faults.append(outside_wrapped(index, input.shape[dim], message))
    return faults


@op(function=False, method=False, saves={"indices": "self"}, check=_check_index)
def index(input: Array, indices: Indices) -> Array:
    """Read at integer index tensors, `x[i, :, j]`; None stands for a whole dim.

    Index dims that are adjacent stay in place, others move to the front, as in NumPy.
    """
    key, _ = _index_key(input, indices)
    return input.at[key].get(mode=IN_BOUNDS)


def _check_put(input: Array, indices: Indices, values: Array, *more: Any) -> list[Fault]:
    if indices and indices[0] is not None and indices[0].dtype == bool:
        return faults_of_fit(values, input.dtype)
    return _check_index(input, indices)


@op(inplace=True, saves={"indices": "*"}, check=_check_put)
def index_put(input: Array, indices: Indices, values: Array, accumulate: bool = False) -> Array:
    """Write `values` at integer index tensors, or add them; one value where a mask is True."""
    mask = indices[0] if indices else None
    if mask is not None and mask.dtype == bool:
        return _put_masked(input, mask, values)
    key, shape = _index_key(input, indices)
    try:
        dimensions.expand_size(values.shape, shape)
    except RuntimeError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {list(shape)}"
        ) from None
    _check_put_dtypes(input, values)
    return put_at(input, key, jnp.broadcast_to(values, shape), accumulate)


def _put_masked(input: Array, mask: Array, value: Array) -> Array:
    """Put one value, of any dtype, where the mask is True."""
    for dim, n in enumerate(mask.shape):
        if n != input.shape[dim]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {dim} does not match the shape "
                f"of the indexed tensor {list(input.shape)} at index {dim}"
            )
    mask = mask.reshape(*mask.shape, *(1,) * (input.ndim - mask.ndim))
    return jnp.where(mask, cast(value, input.dtype).reshape(()), input)


def _check_put_dtypes(input: Array, values: Array) -> None:
    if values.dtype != input.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(input.dtype)} for the destination and {scalar_name(values.dtype)} "
            "for the source."
        )


def put_at(base: Array, key: Any, values: Any, accumulate: bool = False) -> Array:
    """Compute `base.at[key].set` (or `add`) with PyTorch's gradient.

    Indices that repeat overwrite each other in an undefined order, but each value receives the
    gradient of its position: that is the derivative JAX takes when told that none repeat.
    """
    where = base.at[key]
    if accumulate and base.dtype == bool:
        return where.max(values, mode=IN_BOUNDS)
    if accumulate:
        return where.add(values, mode=IN_BOUNDS)
    return where.set(values, mode=IN_BOUNDS, unique_indices=True)


# Along one dim ---------------------------------------------------------------------------------


def _check_index_select(input: Array, dim: int, index: Array) -> list[Fault]:
    axis = dimensions.wrap_dim(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 1
    if axis == 1:
        message = f"INDICES element is out of DATA bounds, id={{value}} axis_dim={size}"
        return [outside(index, size, message, RuntimeError)]
    return [outside(index, size, "index out of range in self")]


@op(saves={"index": "self"}, check=_check_index_select)
def index_select(input: Array, dim: int, index: Array) -> Array:
    """Take the indices of a vector along a dim."""
    dim = dimensions.wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not input.ndim and index.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
        )
    if index.dtype.name not in INT32_INT64:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim:
        return input
    if input.shape[dim] == 0 and index.size:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    key = (slice(None),) * dim + (index.reshape(-1),)
    return input.at[key].get(mode=IN_BOUNDS)


# Of the flat tensor ----------------------------------------------------------------------------


def _check_take(input: Array, index: Array, *args: Any, **kwargs: Any) -> list[Fault]:
    message = f"out of range: tried to access index {{value}} on a tensor of {input.size} elements."
    return [outside_wrapped(index, input.size, message)]


def _need_long(name: str, index: Array) -> None:
    if index.dtype.name != "int64":
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {scalar_name(index.dtype)}"
        )


@op(saves={"self": "self", "index": "self"}, check=_check_take)
def take(input: Array, index: Array) -> Array:
    """Take elements of the flat tensor."""
    _need_long("take", index)
    if not input.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    return lax.reshape(input, (input.size,)).at[index].get(mode=IN_BOUNDS)


@op(inplace=True, saves={"index": "*", "source": "source"}, check=_check_take)
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Write elements of the flat tensor, or add to them."""
    _need_long("put_", index)
    if source.dtype != input.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(input.dtype)} and source.dtype = {scalar_name(source.dtype)}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    flat = lax.reshape(input, (input.size,))
    written = put_at(flat, index.reshape(-1), source.reshape(-1), accumulate)
    return lax.reshape(written, input.shape)
