"""JAX's paddings and convolutions in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: At most so many elements has the matrix of windows of a convolution: more than NumPy's largest
#: value, for it has each element of the input once for each place of the kernel.
MOST_COLUMNS = 1 << 22


def pad(given: Any, made: Any, *, padding_config: Any) -> Callable[..., Any]:
    """Return NumPy's rule for a padding, which a negative number makes a cut."""
    shape, dtype = made[0].shape, made[0].dtype
    at, of = _places(given[0].shape, shape, padding_config)

    def padded(x: Any, value: Any) -> Any:
        out = np.full(shape, value, dtype)
        out[at] = x[of]
        return out

    return padded


def _places(
    sizes: Sequence[int], padded: Sequence[int], config: Any
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return where the elements of an array are once it is padded, and which of them remain."""
    at, of = [], []
    for n, length, (low, _, inside) in zip(sizes, padded, config, strict=True):
        places = low + np.arange(n) * (inside + 1)
        (kept,) = np.nonzero((places >= 0) & (places < length))  # negative padding cuts off
        first, count = (kept[0], len(kept)) if len(kept) else (0, 0)
        start = places[first] if count else 0
        of.append(slice(first, first + count))
        at.append(slice(start, start + count * (inside + 1), inside + 1))
    return tuple(at), tuple(of)


class Product:
    """A function that multiplies matrices.

    Attributes:
      elements: how many the larger one has, which no value of the program is.
    """

    __slots__ = ("_fn", "elements")

    def __init__(self, fn: Callable[..., Any], elements: int) -> None:
        self._fn, self.elements = fn, elements

    def __call__(self, *arrays: Any) -> Any:
        return self._fn(*arrays)


def convolution(
    given: Any, made: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
    rhs_dilation: Any, dimension_numbers: Any, feature_group_count: int, batch_group_count: int,
    **_: Any,
) -> Callable[..., Any] | None:  # fmt: skip
    """Return NumPy's rule for a convolution by one matrix product a group; None if too large."""
    x_order, kernel_order, out_order = dimension_numbers
    rows, channels, *image = (given[0].shape[i] for i in x_order)
    results, depth, *kernel = (given[1].shape[i] for i in kernel_order)
    positions = [made[0].shape[i] for i in out_order[2:]]
    groups = feature_group_count * batch_group_count  # one of them is 1
    rows //= batch_group_count
    columns = rows * groups * math.prod(positions) * depth * math.prod(kernel)
    if columns > MOST_COLUMNS:
        return None
    whole = (rows, results, *positions)
    back = np.argsort(out_order)
    if not columns or not results:  # nothing is summed
        return lambda x, weight: np.zeros(made[0].shape, made[0].dtype)
    config = [(*ends, inside - 1) for ends, inside in zip(padding, lhs_dilation, strict=True)]
    padded = [
        ((n - 1) * inside + 1 if n else 0) + sum(ends)
        for n, ends, inside in zip(image, padding, lhs_dilation, strict=True)
    ]
    at, of = _places(image, padded, config)
    reach = [(n - 1) * step + 1 for n, step in zip(kernel, rhs_dilation, strict=True)]
    spatial = range(3, 3 + len(kernel))
    # The whole of groups, rows and depth, then of each spatial dim where windows begin, and of
    # each dim of a window its places.
    taken: Any = (
        *[slice(None)] * 3,
        *[slice(None, None, step) for step in (*window_strides, *rhs_dilation)],
    )
    order = (0, 1, *spatial, 2, *range(3 + len(kernel), 3 + 2 * len(kernel)))
    by_rows = batch_group_count > 1
    ahead: Any = (slice(None),) * 3

    def convolved(x: Any, weight: Any) -> Any:
        x = x.transpose(x_order)
        if by_rows:
            x = x.reshape(groups, rows, channels, *image)
        else:
            x = x.reshape(rows, groups, depth, *image).swapaxes(0, 1)
        spread = np.zeros((groups, rows, depth, *padded), x.dtype)
        spread[ahead + at] = x[ahead + of]
        windows = np.lib.stride_tricks.sliding_window_view(spread, reach, tuple(spatial))
        windows = windows[taken].transpose(order)
        flat = weight.transpose(kernel_order).reshape(groups, results // groups, -1)
        found = windows.reshape(groups, -1, flat.shape[2]) @ flat.swapaxes(1, 2)
        found = found.reshape(groups, rows, *positions, -1)
        # From [groups, rows, positions, results of a group] to [rows, results, positions].
        found = np.moveaxis(np.moveaxis(found, 0, 1), -1, 2).reshape(whole)
        return found.transpose(back)

    return Product(convolved, columns)
