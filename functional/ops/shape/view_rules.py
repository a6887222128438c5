"""Rules of view ops, by which the strides of a view follow from those of its base.

`VIEW_RULES[name]` maps the base's `Layout` and the op's further arguments to the view's `Layout` (a
list of them where the op has several results), or None where PyTorch would have to copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import dimensions, slice_sizes
from .strides import Layout, is_contiguous, view_strides

VIEW_RULES: dict[str, Callable[..., Any]] = {}


def _rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the rule of these ops; its parameters have the ops' names, as calls give keywords."""

    def enter(fn: Callable[..., Any]) -> Callable[..., Any]:
        VIEW_RULES.update(dict.fromkeys(names, fn))
        return fn

    return enter


def _reshaped(base: Layout, size: Sequence[int]) -> Layout | None:
    strides = view_strides(base.shape, base.strides, size)
    return None if strides is None else Layout(tuple(size), strides, base.offset)


@_rule("view")
def _view(base: Layout, size: Sequence[int]) -> Layout | None:
    return _reshaped(base, dimensions.infer_size(size, math.prod(base.shape)))


@_rule("reshape")
def _reshape(base: Layout, shape: Sequence[int]) -> Layout | None:
    return _view(base, shape)


@_rule("flatten")
def _flatten(base: Layout, start_dim: int = 0, end_dim: int = -1) -> Layout | None:
    size = dimensions.flatten_size(base.shape, start_dim, end_dim)
    return base if size == base.shape else _reshaped(base, size)


@_rule("ravel")
def _ravel(base: Layout) -> Layout | None:
    # PyTorch's `ravel` is `contiguous().view(-1)`: it copies even a vector with gaps.
    return _reshaped(base, (math.prod(base.shape),)) if is_contiguous(*base[:2]) else None


@_rule("view_as_real")
def _view_as_real(base: Layout) -> Layout:
    strides = (*[2 * n for n in base.strides], 1)
    return Layout((*base.shape, 2), strides, 2 * base.offset)


@_rule("view_dtype")
def _view_dtype(base: Layout, dtype: Any, itemsize: int) -> Layout:
    size = dtype.itemsize
    if size == itemsize:
        return base
    shape = (*base.shape[:-1], base.shape[-1] * itemsize // size)
    strides = (*[n * itemsize // size for n in base.strides[:-1]], 1)
    return Layout(shape, strides, base.offset * itemsize // size)


@_rule("view_as_complex")
def _view_as_complex(base: Layout) -> Layout:
    return Layout(base.shape[:-1], tuple([n // 2 for n in base.strides[:-1]]), base.offset // 2)


@_rule("unflatten")
def _unflatten(base: Layout, dim: int, sizes: Sequence[int]) -> Layout | None:
    return _reshaped(base, dimensions.unflatten_size(base.shape, dim, sizes))


@_rule("alias", "detach", "conj", "_neg_view")
def _same(base: Layout) -> Layout:
    return base


@_rule("unsqueeze")
def _unsqueeze(base: Layout, dim: int) -> Layout:
    dim = dimensions.wrap_dim(dim, len(base.shape) + 1)
    step = base.shape[dim] * base.strides[dim] if dim < len(base.shape) else 1
    return _spliced(base, dim, 0, (1,), (step,))


def _spliced(
    base: Layout, dim: int, drop: int, shape: Sequence[int], strides: Sequence[int], shift: int = 0
) -> Layout:
    return Layout(
        (*base.shape[:dim], *shape, *base.shape[dim + drop :]),
        (*base.strides[:dim], *strides, *base.strides[dim + drop :]),
        base.offset + shift,
    )


def _ordered(base: Layout, order: Sequence[int]) -> Layout:
    return Layout(
        tuple(base.shape[dim] for dim in order), tuple(base.strides[dim] for dim in order),
        base.offset,
    )  # fmt: skip


@_rule("squeeze")
def _squeeze(base: Layout, dim: int | Sequence[int] | None = None) -> Layout:
    dropped = dimensions.squeezed_dims(base.shape, dim)
    return _ordered(base, [d for d in range(len(base.shape)) if d not in dropped])


@_rule("permute")
def _permute(base: Layout, dims: Sequence[int]) -> Layout:
    return _ordered(base, dimensions.permute_order(dims, len(base.shape)))


@_rule("transpose", "swapdims")
def _transpose(base: Layout, dim0: int, dim1: int) -> Layout:
    return _ordered(base, dimensions.transpose_order(dim0, dim1, len(base.shape)))


@_rule("swapaxes")
def _swapaxes(base: Layout, axis0: int, axis1: int) -> Layout:
    return _transpose(base, axis0, axis1)


@_rule("t", "T", "H")
def _reversed(base: Layout) -> Layout:
    return _ordered(base, range(len(base.shape))[::-1])


@_rule("mT", "mH", "adjoint")
def _matrix(base: Layout) -> Layout:
    return _ordered(base, dimensions.matrix_order(len(base.shape), "mT"))


@_rule("movedim", "moveaxis")
def _movedim(base: Layout, source: Any, destination: Any) -> Layout:
    return _ordered(base, dimensions.movedim_order(source, destination, len(base.shape)))


@_rule("select")
def _select(base: Layout, dim: int, index: int) -> Layout:
    index = slice_sizes.select_index(base.shape, dim, index)
    dim %= len(base.shape)
    return _spliced(base, dim, 1, (), (), index * base.strides[dim])


@_rule("narrow")
def _narrow(base: Layout, dim: int, start: int, length: int) -> Layout:
    start = slice_sizes.narrow_start(base.shape, dim, start, length)
    dim %= len(base.shape)
    step = base.strides[dim]
    return _spliced(base, dim, 1, (length,), (step,), start * step)


@_rule("slice")
def _slice(
    base: Layout, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Layout:
    dim = dimensions.wrap_dim(dim, len(base.shape))
    first, count = slice_sizes.slice_bounds(base.shape[dim], start, end, step)
    stride = base.strides[dim]
    return _spliced(base, dim, 1, (count,), (stride * step,), first * stride)


@_rule("diagonal")
def _diagonal(base: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Layout:
    dim1, dim2, length = slice_sizes.diagonal_dims(base.shape, offset, dim1, dim2)
    row, column = base.strides[dim1], base.strides[dim2]
    shift = 0 if not length else offset * column if offset >= 0 else -offset * row
    rest = _ordered(base, [d for d in range(len(base.shape)) if d not in (dim1, dim2)])
    return _spliced(rest, len(rest.shape), 0, (length,), (row + column,), shift)


@_rule("unbind")
def _unbind(base: Layout, dim: int = 0) -> list[Layout]:
    dim = dimensions.wrap_dim(dim, len(base.shape))
    return [_select(base, dim, i) for i in range(base.shape[dim])]


def _pieces(base: Layout, sizes: Sequence[int], dim: int) -> list[Layout]:
    return [_narrow(base, dim, sum(sizes[:i]), length) for i, length in enumerate(sizes)]


@_rule("split")
def _split(base: Layout, split_size_or_sections: Any, dim: int = 0) -> list[Layout]:
    return _pieces(base, slice_sizes.split_sizes(base.shape, split_size_or_sections, dim), dim)


@_rule("split_with_sizes")
def _split_with_sizes(base: Layout, split_sizes: Any, dim: int = 0) -> list[Layout]:
    return _split(base, split_sizes, dim)


@_rule("chunk")
def _chunk(base: Layout, chunks: int, dim: int = 0) -> list[Layout]:
    return _pieces(base, slice_sizes.chunk_sizes(base.shape, chunks, dim), dim)


@_rule("tensor_split")
def _tensor_split(base: Layout, indices_or_sections: Any, dim: int = 0) -> list[Layout]:
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        long, rest = divmod(base.shape[dim], sections)
        return _pieces(base, [long + (i < rest) for i in range(sections)], dim)
    cuts = [None, *indices_or_sections, None]
    return [_slice(base, dim, a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


@_rule("expand", "broadcast_to")
def _expand(base: Layout, size: Sequence[int]) -> Layout:
    shape = dimensions.expand_size(base.shape, size)
    lead = len(shape) - len(base.shape)
    strides = [0] * len(shape)
    if not base.shape:
        return Layout(shape, tuple(strides), base.offset)
    for dim in reversed(range(len(shape))):
        if dim >= lead:
            have, step = base.shape[dim - lead], base.strides[dim - lead]
        else:
            have, step = 1, shape[dim + 1] * strides[dim + 1]
        strides[dim] = step if have == shape[dim] else 0
    return Layout(shape, tuple(strides), base.offset)


@_rule("unfold")
def _unfold(base: Layout, dimension: int, size: int, step: int) -> Layout:
    dim, windows = slice_sizes.unfold_windows(base.shape, dimension, size, step)
    if not base.shape:
        return Layout((size,), (1,), base.offset)
    stride = base.strides[dim]
    out = _spliced(base, dim, 1, (windows,), (stride * step,))
    return _spliced(out, len(base.shape), 0, (size,), (stride,))


@_rule("memory")
def _memory(base: Layout, stride: Sequence[int]) -> Layout:
    reach = 1 + sum((n - 1) * step for n, step in zip(base.shape, stride, strict=True))
    return Layout((reach,), (1,), base.offset)


@_rule("as_strided")
def _as_strided(
    base: Layout, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Layout:
    offset = base.offset if storage_offset is None else storage_offset
    return Layout(tuple(size), tuple(stride), offset)
