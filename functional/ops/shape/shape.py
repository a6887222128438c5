"""Ops that repeat, reorder and copy elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast, is_integral
from ...program.op import Decorator, ops_with
from . import dimensions

op: Decorator = ops_with(moves=True)

Array = jax.Array
Dims = int | Sequence[int]


# Repeats ---------------------------------------------------------------------------------------


def _repeat(input: Array, repeats: Sequence[int]) -> Array:
    if len(repeats) < input.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions "
            "of tensor"
        )
    shape = (1,) * (len(repeats) - input.ndim) + input.shape
    out = [n * times for n, times in zip(shape, repeats, strict=True)]
    for length in out:
        if length < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {out}")
    return jnp.tile(input, tuple(repeats))


@op(function=False, sizes=("repeats",))
def repeat(input: Array, repeats: Sequence[int]) -> Array:
    """Repeat a tensor along each dim; new dims come in front."""
    return _repeat(input, repeats)


@op(backward="RepeatBackward0")
def tile(input: Array, dims: Sequence[int]) -> Array:
    """Repeat a tensor along its last dims."""
    return _repeat(input, (1,) * (input.ndim - len(dims)) + tuple(dims))


@op(backward="ViewBackward0")
def repeat_interleave(
    input: Array, repeats: int, dim: int | None = None, output_size: int | None = None
) -> Array:
    """Repeat each element, of the flat tensor or along a dim."""
    if dim is None:
        input, dim = lax.reshape(input, (input.size,)), 0
    dim = dimensions.wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if output_size not in (None, input.shape[dim] * repeats):
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {input.shape[dim] * repeats} but "
            f"got {output_size}"
        )
    shape = (*input.shape[: dim + 1], repeats, *input.shape[dim + 1 :])
    kept = tuple(axis for axis in range(len(shape)) if axis != dim + 1)
    whole = lax.broadcast_in_dim(input, shape, kept)
    return whole.reshape(*shape[:dim], shape[dim] * repeats, *shape[dim + 2 :])


# Orders ----------------------------------------------------------------------------------------


@op()
def flip(input: Array, dims: Dims) -> Array:
    """Reverse the order of elements along dims."""
    found = dimensions.wrap_dims(dims, input.ndim)  # a number has a dim to name, and none to turn
    return lax.rev(input, found if input.ndim else ())


@op(backward="FlipBackward0")
def fliplr(input: Array) -> Array:
    """Reverse dim 1."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return lax.rev(input, (1,))


@op(backward="FlipBackward0")
def flipud(input: Array) -> Array:
    """Reverse dim 0."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return lax.rev(input, (0,))


@op()
def roll(input: Array, shifts: Dims, dims: Dims = ()) -> Array:
    """Move elements along dims, or in the flat tensor, and those that fall off to the front."""
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if dims and not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if not dims:
        return jnp.roll(lax.reshape(input, (input.size,)), shifts[0]).reshape(input.shape)
    return jnp.roll(input, shifts, tuple(dimensions.wrap_dim(dim, input.ndim) for dim in dims))


@op()
def rot90(input: Array, k: int = 1, dims: Sequence[int] = (0, 1)) -> Array:
    """Rotate by 90 degrees, `k` times, in the plane of two dims."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (dimensions.wrap_dim(dim, input.ndim) for dim in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    return jnp.rot90(input, k, (first, second))


# Triangles and diagonals -----------------------------------------------------------------------


def _need_matrix(name: str, input: Array) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def _near(diagonal: int, x: Array) -> int:
    """Return a diagonal that leaves as much of the matrices, where sums with it do not overflow."""
    return max(-x.shape[-2], min(diagonal, x.shape[-1]))


@op(inplace=True)
def tril(input: Array, diagonal: int = 0) -> Array:
    """Keep the lower triangle of matrices, zeros above `diagonal`."""
    _need_matrix("tril", input)
    return jnp.tril(input, _near(diagonal, input))


@op(inplace=True)
def triu(input: Array, diagonal: int = 0) -> Array:
    """Keep the upper triangle of matrices, zeros below `diagonal`."""
    _need_matrix("triu", input)
    return jnp.triu(input, _near(diagonal, input))


def _diag_embed(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    ndim = input.ndim + 1
    first, second = dimensions.wrap_dim(dim1, ndim), dimensions.wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if first > second:
        first, second, offset = second, first, -offset
    size = input.shape[-1] + abs(offset)
    steps = jnp.arange(input.shape[-1])
    out = jnp.zeros((*input.shape[:-1], size, size), input.dtype)
    key = (..., steps + max(-offset, 0), steps + max(offset, 0))
    return jnp.moveaxis(out.at[key].set(input, unique_indices=True), (-2, -1), (first, second))


@op()
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Make matrices of zeros with the last dim on their diagonal."""
    return _diag_embed(input, offset, dim1, dim2)


@op()
def diagflat(input: Array, offset: int = 0) -> Array:
    """Make a matrix of zeros with all elements on its diagonal."""
    return _diag_embed(lax.reshape(input, (input.size,)), offset, 0, 1)


@op(backward="DiagEmbedBackward0")
def diag(input: Array, diagonal: int = 0) -> Array:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    if input.ndim == 1:
        return _diag_embed(input, diagonal, 0, 1)
    rows, columns = input.shape
    if not -rows <= diagonal <= columns:
        return jnp.zeros(0, input.dtype)
    return jnp.diagonal(input, diagonal)


@op()
def trace(input: Array) -> Array:
    """Sum of a matrix's diagonal."""
    if input.dtype.name == "bool":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    dtype = np.dtype("int64") if is_integral(input.dtype) else input.dtype
    return jnp.sum(jnp.diagonal(input).astype(dtype), dtype=dtype)


# Copies ----------------------------------------------------------------------------------------


@op()
def clone(input: Array, memory_format: Any = None) -> Array:
    """Copy."""
    return input


@op(function=False, backward="CloneBackward0")
def contiguous(input: Array, memory_format: Any = None) -> Array:
    """Copy into row-major order."""
    return input


@op(name="_unsafe_view", function=False, method=False, sizes=("size",))
def unsafe_view(input: Array, size: tuple[int, ...]) -> Array:
    """Give the elements of a tensor that nobody else holds a new shape; no view to autograd."""
    return lax.reshape(input, size)


@op(name="_to_copy", function=False, method=False, backward="ToCopyBackward0")
def to_copy(
    input: Array, dtype: np.dtype | None = None, memory_format: Any = None, device: Any = None
) -> Array:
    """Copy with another dtype, `x.to(dtype)`, or to another device: whoever runs it moves it."""
    return input if dtype is None else cast(input, dtype)


@op(inplace=True, method=False, numbers=("value",), fits={"value": "any"})
def fill(input: Array, value: Any) -> Array:
    """Fill with a number or a 0-dim tensor."""
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} "
            "dimensions."
        )
    return jnp.broadcast_to(cast(value, input.dtype), input.shape)


@op(inplace=True, function=False, method=False)
def zero(input: Array) -> Array:
    """Fill with zeros."""
    return jnp.zeros(input.shape, input.dtype)


@op(inplace=True, function=False, method=False, backward="CopyBackwards")
def copy(input: Array, src: Array, non_blocking: bool = False) -> Array:
    """Overwrite with the elements of `src`, cast and broadcast."""
    if src.ndim > input.ndim or any(
        n not in (1, m) for n, m in zip(reversed(src.shape), reversed(input.shape), strict=False)
    ):
        common = dimensions.broadcast_shapes(input.shape, src.shape)
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape "
            f"{list(common)}"
        )
    return jnp.broadcast_to(cast(src, input.dtype), input.shape)
