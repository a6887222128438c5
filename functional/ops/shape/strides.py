"""PyTorch's strides of views, in plain Python.

Arrays have no strides here; what `stride()`, `storage_offset()`, `is_contiguous()` and the error of
`view()` say is computed from the views that led to a tensor (`view_rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead."
)


class Layout(NamedTuple):
    """Shape, strides and storage offset, counted in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a newly made tensor."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def contiguous(shape: Sequence[int]) -> Layout:
    """Return the layout of a newly made tensor."""
    return Layout(tuple(shape), contiguous_strides(shape))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return True if elements lie in row-major order without gaps; length-1 dims are free."""
    if 0 in shape:
        return True
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def view_strides(
    shape: Sequence[int], strides: Sequence[int], size: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the strides that read the elements under a new shape, None if there are none.

    The algorithm is ATen's `computeStride`: find runs of dims that are contiguous among
    themselves, and let each run be filled by dims of the new shape.
    """
    if not shape:
        return (1,) * len(size)
    if 0 in shape:
        return tuple(strides) if tuple(shape) == tuple(size) else contiguous_strides(size)
    out = [0] * len(size)
    at, step, run, filled = len(size) - 1, strides[-1], 1, 1
    for dim in reversed(range(len(shape))):
        run *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != run * step):
            while at >= 0 and (filled < run or size[at] == 1):
                out[at] = filled * step
                filled *= size[at]
                at -= 1
            if filled != run:
                return None
            if dim:
                step, run, filled = strides[dim - 1], 1, 1
    return tuple(out) if at < 0 else None
