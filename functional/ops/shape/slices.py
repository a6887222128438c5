"""View ops that take some elements, or some elements several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import is_integral, scalar_name
from ...program.op import Decorator, Fault, ops_with
from ..nn.checks import repeated
from . import dimensions, slice_sizes

op: Decorator = ops_with(moves=True)
Array = jax.Array


def _check_select(input: Array, dim: int, index: Any) -> list[Fault]:
    if not hasattr(index, "dtype"):
        return []
    size = input.shape[dim]
    message = (
        f"select(): index {{value}} out of range for tensor of size {list(input.shape)} at "
        f"dimension {dim % input.ndim}"
    )
    return [Fault((index < -size) | (index >= size), IndexError, message, index)]


def _write_select(base: Array, new: Array, dim: int, index: Any) -> Array:
    return lax.dynamic_update_index_in_dim(base, new, index, dim)


def need_index(input: Array, dim: int, index: Any) -> None:
    """Raise for a number that is no index of the dim."""
    if isinstance(index, int):
        slice_sizes.select_index(input.shape, dim, index)


@op(
    view=True, numbers=("index",), sizes=("index",), check=_check_select, write=_write_select,
    need=need_index,
)  # fmt: skip
def select(input: Array, dim: int, index: Any) -> Array:
    """Take one index of a dim and drop the dim, `x[index]`."""
    is_number = not hasattr(index, "dtype")  # or a symbol for one
    static = slice_sizes.select_index(input.shape, dim, index if is_number else None)
    if is_number:
        return lax.index_in_dim(input, static, dim, keepdims=False)
    return lax.dynamic_index_in_dim(input, index, dim, keepdims=False)


def _check_narrow(input: Array, dim: int, start: Any, length: int) -> list[Fault]:
    if not hasattr(start, "dtype"):
        return []
    size = input.shape[dim]
    outside = (
        f"start out of range (expected to be in range of [{-size}, {size}], but got {{value}})"
    )
    past = f"start ({{value}}) + length ({length}) exceeds dimension size ({size})."
    front = jnp.where(start < 0, start + size, start)
    return [
        Fault((start < -size) | (start > size), IndexError, outside, start),
        Fault(front + length > size, RuntimeError, past, front),
    ]


def _write_narrow(base: Array, new: Array, dim: int, start: Any, length: int) -> Array:
    return lax.dynamic_update_slice_in_dim(base, new, start, dim)


def _need_start(input: Array, dim: int, start: Any, length: int) -> None:
    if isinstance(start, int):
        slice_sizes.narrow_start(input.shape, dim, start, length)


@op(
    view=True, numbers=("start",), sizes=("start", "length"), backward="SliceBackward0",
    check=_check_narrow, write=_write_narrow, need=_need_start,
)  # fmt: skip
def narrow(input: Array, dim: int, start: Any, length: int) -> Array:
    """Take `length` indices of a dim from `start`."""
    is_number = not hasattr(start, "dtype")  # or a symbol for one
    static = slice_sizes.narrow_start(input.shape, dim, start if is_number else None, length)
    if is_number:
        return lax.slice_in_dim(input, static, static + length, axis=dim)
    if start.ndim or not is_integral(start.dtype) or start.dtype == np.dtype(bool):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    if length > input.shape[dim]:
        raise RuntimeError(
            f"start (0) + length ({length}) exceeds dimension size ({input.shape[dim]})."
        )
    return lax.dynamic_slice_in_dim(input, start, length, axis=dim)


def write_slice(
    base: Array, new: Array, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Array:  # fmt: skip
    first, count = slice_sizes.slice_bounds(base.shape[dim], start, end, step)
    if count == base.shape[dim]:
        return new
    if step == 1:
        return lax.dynamic_update_slice_in_dim(base, new, first, dim)
    taken = slice(first, first + count * step, step)
    return base.at[(slice(None),) * (dim % base.ndim) + (taken,)].set(new)


@op(
    view=True, name="slice", function=False, method=False, write=write_slice,
    sizes=("start", "end"),
)  # fmt: skip
def slice_(
    input: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """Take a Python slice of one dim, `x[start:end:step]`."""
    if not input.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    dim = dimensions.wrap_dim(dim, input.ndim)
    first, count = slice_sizes.slice_bounds(input.shape[dim], start, end, step)
    last = first + (count - 1) * step + 1 if count else first
    return lax.slice_in_dim(input, first, last, step, axis=dim)


def _diagonal_index(shape: dimensions.Shape, offset: int, dim1: int, dim2: int) -> tuple[Any, ...]:
    dim1, dim2, length = slice_sizes.diagonal_dims(shape, offset, dim1, dim2)
    index: list[Any] = [slice(None)] * len(shape)
    steps: Any = np.arange(length) if type(length) is int else jnp.arange(length)
    index[dim1], index[dim2] = steps + max(-offset, 0), steps + max(offset, 0)
    return tuple(index), dim1, dim2


def write_diagonal(base: Array, new: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    index, dim1, dim2 = _diagonal_index(base.shape, offset, dim1, dim2)
    # Adjacent index arrays put their dim in the place of the first, others put it in front.
    target = min(dim1, dim2) if abs(dim1 - dim2) == 1 else 0
    return base.at[index].set(jnp.moveaxis(new, -1, target), unique_indices=True)


@op(view=True, write=write_diagonal)
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Take the diagonal of two dims, as the last dim of the result."""
    index, dim1, dim2 = _diagonal_index(input.shape, offset, dim1, dim2)
    source = 0 if abs(dim1 - dim2) != 1 else min(dim1, dim2)
    taken = input.at[index].get(unique_indices=True, mode="promise_in_bounds")
    return jnp.moveaxis(taken, source, -1)


# Some elements several times -----------------------------------------------------------------


def _write_expand(base: Array, new: Array, size: Sequence[int]) -> Array:
    """Write what was changed where copies of an element differ."""
    if new.size == base.size:
        return new.reshape(base.shape)
    if not new.size:
        return base
    lead = new.ndim - base.ndim
    dims = [*range(lead)]
    dims += [lead + i for i, n in enumerate(base.shape) if n == 1 and new.shape[lead + i] != 1]
    kept = [i for i in range(new.ndim) if i not in dims]
    copies = lax.transpose(new, (*dims, *kept)).reshape(-1, *base.shape)
    chosen = jnp.argmax(copies != base, axis=0)[None]
    return jnp.take_along_axis(copies, chosen, axis=0)[0]


def _expand(input: Array, size: Sequence[int]) -> Array:
    shape = dimensions.expand_size(input.shape, size, scalar_name(input.dtype))
    return repeated(input, tuple(shape))


@op(view=True, function=False, write=_write_expand, sizes=("size",))
def expand(input: Array, size: Sequence[int]) -> Array:
    """Repeat dims of length 1, and new ones in front, without copying; -1 keeps a dim."""
    return _expand(input, size)


@op(view=True, backward="ExpandBackward0", write=_write_expand, sizes=("size",))
def broadcast_to(input: Array, size: Sequence[int]) -> Array:
    """Repeat dims of length 1, and new ones in front, by NumPy's name."""
    return _expand(input, size)


def _window_index(dim: int, windows: int, size: int, step: int) -> tuple[Any, ...]:
    starts = lax.broadcasted_iota(jnp.int32, (windows, size), 0) * step
    return (slice(None),) * dim + (starts + lax.broadcasted_iota(jnp.int32, (windows, size), 1),)


def _write_unfold(base: Array, new: Array, dimension: int, size: int, step: int) -> Array:
    dim, windows = slice_sizes.unfold_windows(base.shape, dimension, size, step)
    if not base.ndim:
        return new.reshape(()) if size else base
    index = _window_index(dim, windows, size, step)
    # PyTorch too looks for strides of 0 only: windows that overlap are written one by one.
    apart = step >= size
    return base.at[index].set(jnp.moveaxis(new, -1, dim + 1), unique_indices=apart)


@op(view=True, function=False, write=_write_unfold)
def unfold(input: Array, dimension: int, size: int, step: int) -> Array:
    """Slide a window along a dim; the window's elements become the last dim."""
    dim, windows = slice_sizes.unfold_windows(input.shape, dimension, size, step)
    if not input.ndim:
        return lax.reshape(input, (1,))[:size]
    if step == size:
        used = lax.slice_in_dim(input, 0, windows * size, axis=dim)
        taken = used.reshape(*input.shape[:dim], windows, size, *input.shape[dim + 1 :])
    else:
        index = _window_index(dim, windows, size, step)
        taken = input.at[index].get(mode="promise_in_bounds")
    return jnp.moveaxis(taken, dim + 1, -1)


def _strided_index(input: Array, size: Any, stride: Any, storage_offset: int | None) -> Array:
    offset = storage_offset or 0
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    reach = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if 0 not in size and reach * input.dtype.itemsize >= 1 << 63:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    if 0 not in size and reach > input.size:
        item = input.dtype.itemsize
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
            f"and itemsize {item} requiring a storage size of {reach * item} are out of bounds "
            f"for storage of size {input.size * item}"
        )
    index = jnp.full(size, offset, jnp.int64)
    for dim, step in enumerate(stride):
        if size[dim] > 1 and step:
            index += lax.broadcasted_iota(jnp.int64, tuple(size), dim) * step
    return index


def _write_as_strided(
    base: Array, new: Array, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> Array:  # fmt: skip
    index = _strided_index(base, size, stride, storage_offset)
    return base.reshape(-1).at[index].set(new).reshape(base.shape)


@op(view=True, write=_write_as_strided)
def as_strided(
    input: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    """Read a contiguous base by size, stride and offset, all counted in elements."""
    index = _strided_index(input, size, stride, storage_offset)
    return lax.reshape(input, (input.size,)).at[index].get(mode="promise_in_bounds")
