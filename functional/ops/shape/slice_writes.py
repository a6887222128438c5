"""Ops that write whole slices, masked elements or views into a copy of their input."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import cast, is_complex, scalar_name
from ...program.op import Decorator, Fault, ops_with
from ..elementwise.operands import category_of
from ..indexing.indexing import IN_BOUNDS, INT32_INT64, outside, outside_wrapped, put_at
from . import dimensions, slice_sizes, slices

op: Decorator = ops_with(moves=True)

Array = jax.Array

# Whole slices ----------------------------------------------------------------------------------


def _check_slices(input: Array, dim: int, index: Array, *args: Any, **kwargs: Any) -> list[Fault]:
    axis = dimensions.wrap_dim(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 1
    message = f"index {{value}} is out of bounds for dimension {axis} with size {size}"
    return [outside(index, size, message, RuntimeError)]


def _check_rows(input: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> list[Fault]:
    if not source.size:
        return []
    axis = dimensions.wrap_dim(dim, input.ndim)
    # PyTorch scatters along an outer dim where it can.
    plain = isinstance(alpha, int) and alpha == 1 and index.dtype.name == "int64"
    if plain and input.ndim > 1 and axis in (0, input.ndim - 1):
        return _check_slices(input, dim, index)
    size = input.shape[axis] if input.ndim else 1
    bad = (index < 0) | (index >= size)
    return [Fault(bad, IndexError, "index out of range in self")]


def _along(input: Array, dim: int, index: Array) -> tuple[Any, ...]:
    return (slice(None),) * dim + (index.reshape(-1),)


def _write_slices(input: Array, dim: int, index: Array, values: Any, add: bool) -> Array:
    base = input if input.ndim else input.reshape(1)
    values = values.reshape(1) if getattr(values, "ndim", 1) == 0 and not input.ndim else values
    return put_at(base, _along(input, dim, index), values, add).reshape(input.shape)


def need_slices(name: str, input: Any, dim: int, index: Any, source: Any) -> int:
    """Refuse slices that do not fit; the dim counted from the front.

    Args:
      name: what messages call the function.
    """
    dim = dimensions.wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{scalar_name(index.dtype)} and size: {list(index.shape)}"
        )
    if index.dtype.name not in INT32_INT64:
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: " + scalar_name(index.dtype)
        )
    if source.dtype != input.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(input.dtype)}) and source "
            f"({scalar_name(source.dtype)}) must have the same scalar type"
        )
    if dim >= source.ndim and input.ndim and (source.ndim or index.size != 1):
        if not source.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise RuntimeError(
            f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim "
            f"{source.ndim}"
        )
    given = source.shape[dim] if dim < source.ndim else 1
    if index.size != given:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({given}), for dim: {dim}"
        )
    rest = input.shape[:dim] + input.shape[dim + 1 :]
    if source.shape[:dim] + source.shape[dim + 1 :] != rest or input.ndim != source.ndim:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
        )
    return dim


@op(
    inplace=True, saves={"index": "source", "source": "source"}, numbers=("alpha",),
    check=_check_rows,
)  # fmt: skip
def index_add(input: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> Array:
    """Add slices of `source`, times `alpha`, to the slices of a dim that a vector names."""
    dim = need_slices("index_add_", input, dim, index, source)
    scaled = source if isinstance(alpha, int) and alpha == 1 else source * cast(alpha, input.dtype)
    return _write_slices(input, dim, index, scaled, True)


def _check_index_copy(input: Array, dim: int, index: Array, source: Array) -> list[Fault]:
    axis = dimensions.wrap_dim(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 1
    message = (
        f"index_copy_(): index {{value}} is out of bounds for dimension {axis} with size {size}"
    )
    return [outside(index, size, message)]


@op(inplace=True, saves={"index": "*", "source": "source"}, check=_check_index_copy)
def index_copy(input: Array, dim: int, index: Array, source: Array) -> Array:
    """Write slices of `source` over the slices of a dim that a vector names."""
    dim = dimensions.wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if input.ndim != source.ndim and input.ndim and source.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality "
            f"must match. Source dimensionality ({source.ndim}), destination dimensionality "
            f"({input.ndim})"
        )
    if index.dtype.name != "int64":
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {scalar_name(index.dtype)}"
        )
    if source.dtype != input.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(input.dtype)} and (source) {scalar_name(source.dtype)}"
        )
    ours = input.shape[:dim] + input.shape[dim + 1 :]
    theirs = source.shape[:dim] + source.shape[dim + 1 :]
    if ours != theirs:

        def text(shape: dimensions.Shape) -> str:
            return " ".join(map(str, shape))

        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {text(ours)} at dimension {dim} and source slice shape: {text(theirs)} "
            f"at dimension 0."
        )
    given = source.shape[dim] if source.ndim else 1
    if index.size != given:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
            f"({given})"
        )
    return _write_slices(input, dim, index, source, False)


def _check_index_fill(input: Array, dim: int, index: Array, value: Any) -> list[Fault]:
    axis = dimensions.wrap_dim(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 1
    message = f"index {{value}} is out of bounds for dimension {axis} with size {size}"
    return [outside_wrapped(index, size, message)]


@op(
    inplace=True,
    saves={"index": "*"},
    numbers=("value",),
    check=_check_index_fill,
    fits={"value": "any"},
)
def index_fill(input: Array, dim: int, index: Array, value: Any) -> Array:
    """Fill the slices of a dim that a vector names with a number or a 0-dim tensor."""
    dim = dimensions.wrap_dim(dim, input.ndim)
    if index.dtype.name != "int64":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if category_of(value) == 3 and not is_complex(input.dtype):
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    # By a mask, so that an index that repeats counts once in the gradient of `value`.
    base = input if input.ndim else input.reshape(1)
    mask = jnp.zeros(base.shape[dim], bool).at[index.reshape(-1)].set(True, mode=IN_BOUNDS)
    mask = mask.reshape(-1, *(1,) * (base.ndim - dim - 1))
    return jnp.where(mask, cast(value, input.dtype), base).reshape(input.shape)


# By a mask -------------------------------------------------------------------------------------


def _check_masked_scatter(input: Array, mask: Array, source: Array) -> list[Fault]:
    message = "Number of elements of source < number of ones in mask"
    shape = jnp.broadcast_shapes(input.shape, mask.shape)
    ones = jnp.sum(jnp.broadcast_to(mask, shape), dtype=jnp.int64)
    return [Fault(ones > source.size, RuntimeError, message)]


@op(inplace=True, saves={"mask": "*"}, check=_check_masked_scatter)
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    """Write the first elements of `source`, in order, where `mask` is True."""
    if mask.dtype.name != "bool":
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            + scalar_name(mask.dtype)
        )
    if source.dtype != input.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_name(input.dtype)} and {scalar_name(source.dtype)}"
        )
    shape = dimensions.broadcast_shapes(mask.shape, input.shape)
    mask, base = jnp.broadcast_to(mask, shape), jnp.broadcast_to(input, shape)
    if not source.size:
        return base
    order = jnp.cumsum(mask.reshape(-1), dtype=jnp.int64).reshape(shape) - 1
    picked = source.reshape(-1).at[jnp.clip(order, 0, source.size - 1)].get(mode=IN_BOUNDS)
    return jnp.where(mask, picked, base)


# Views, written into a copy --------------------------------------------------------------------


def need_slice_shape(src: Array, shape: dimensions.Shape) -> None:
    """Check the shape as `select_scatter` and its like do."""
    if src.shape != shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(shape)}"
        )


def _need_index(input: Array, src: Array, dim: int, index: Any) -> None:
    slices.need_index(input, dim, index)


@op(numbers=("index",), need=_need_index)
def select_scatter(input: Array, src: Array, dim: int, index: Any) -> Array:
    """Copy of `input` with one index of a dim replaced."""
    static = index if isinstance(index, int) else None
    slice_sizes.select_index(input.shape, dim, static)
    dim = dimensions.wrap_dim(dim, input.ndim)
    need_slice_shape(src, input.shape[:dim] + input.shape[dim + 1 :])
    return lax.dynamic_update_index_in_dim(input, cast(src, input.dtype), index, dim)


@op(sizes=("start", "end"))
def slice_scatter(
    input: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Array:  # fmt: skip
    """Copy of `input` with a slice of a dim replaced."""
    dim = dimensions.wrap_dim(dim, input.ndim)
    _, count = slice_sizes.slice_bounds(input.shape[dim], start, end, step)
    need_slice_shape(src, (*input.shape[:dim], count, *input.shape[dim + 1 :]))
    return slices.write_slice(input, cast(src, input.dtype), dim, start, end, step)


@op()
def diagonal_scatter(
    input: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Array:
    """Copy of `input` with a diagonal replaced."""
    first, second, length = slice_sizes.diagonal_dims(input.shape, offset, dim1, dim2)
    rest = [n for axis, n in enumerate(input.shape) if axis not in (first, second)]
    need_slice_shape(src, (*rest, length))
    return slices.write_diagonal(input, cast(src, input.dtype), offset, dim1, dim2)
