"""JAX's gather and scatter in NumPy, by the positions in the operand that they read or write.

The windows are those of XLA's operation semantics: each row of the indices says where a window of
the operand begins, in the dims that it has a number for, and goes on with the batch's own number
in the batching dims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode


class _Windows:
    """The places where windows of an operand lie.

    Args:
      shape: the operand's.
      sizes: a window's, of as many dims as the operand has.
      starts: the operand's dims that the numbers of a row of the indices are for.
      batching: the operand's dims, and those of the indices, that go together.
    """

    def __init__(
        self, shape: Sequence[int], sizes: Sequence[int], starts: Sequence[int],
        batching: tuple[Sequence[int], Sequence[int]],
    ) -> None:  # fmt: skip
        self._sizes, self._starts = tuple(sizes), tuple(starts)
        self._batching = dict(zip(*batching, strict=True))
        self._last = [n - size for n, size in zip(shape, sizes, strict=True)]

    def __call__(self, indices: Any, clip: bool) -> tuple[tuple[Any, ...], Any]:
        """Return the positions in each dim of the operand, and which windows lie within it.

        Both have the dims of `indices` but the last and then those of the operand, of a window's
        sizes (1 for what tells whether it lies within).

        Args:
          indices: integers `[..., len(starts)]`.
          clip: a window that is too far out is moved until it fits.
        """
        batch, rank = indices.shape[:-1], len(self._sizes)
        within = np.ones(batch, bool)
        positions = []
        for dim, (size, last) in enumerate(zip(self._sizes, self._last, strict=True)):
            if dim in self._starts:
                first = indices[..., self._starts.index(dim)].astype(np.int64)
            elif dim in self._batching:
                of_batch = self._batching[dim]
                first = _along(of_batch, batch[of_batch], len(batch))
            else:
                first = np.zeros([1] * len(batch), np.int64)
            fits = (first >= 0) & (first <= last)
            within &= fits
            first = np.clip(first, 0, last) if clip else np.where(fits, first, 0)
            positions.append(first.reshape(*first.shape, *[1] * rank) + _along(dim, size, rank))
        return tuple(positions), within.reshape(*batch, *[1] * rank)


def _along(dim: int, size: int, rank: int) -> Any:
    """Count from 0 along a dim."""
    return np.arange(size).reshape([-1 if i == dim else 1 for i in range(rank)])


def gather(
    given: Any, made: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any,
    **_: Any,
) -> Callable[..., Any]:  # fmt: skip
    """Return NumPy's rule for a gather."""
    if not made[0].size:  # a batch of nothing: neither have its windows anything
        return lambda x, indices: np.zeros(made[0].shape, made[0].dtype)
    numbers = dimension_numbers
    batching = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    starts, shape = numbers.start_index_map, given[0].shape
    windows = _Windows(shape, slice_sizes, starts, batching)
    fills = mode == GatherScatterMode.FILL_OR_DROP
    batch = given[1].ndim - 1
    rows = _row_axis(shape, slice_sizes, starts, numbers.offset_dims, batch)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    alone = tuple(batch + dim for dim in dropped)
    offsets = range(batch, batch + len(slice_sizes) - len(dropped))
    other = _filler(made[0].dtype) if fill_value is None else fill_value

    def gathered(x: Any, indices: Any) -> Any:
        if rows is not None:
            places = indices[..., 0]
            if _all_within(places, x.shape[rows]):
                return x.take(places, rows)
        positions, within = windows(indices, clip=not fills)
        found = x[positions]
        if fills and not within.all():
            found = np.where(within, found, other)
        return np.moveaxis(found.squeeze(alone), offsets, numbers.offset_dims)

    return gathered


def _row_axis(
    shape: Sequence[int], sizes: Sequence[int], starts: Sequence[int], offsets: Sequence[int],
    batch: int,
) -> int | None:  # fmt: skip
    """Return the dim of which windows are rows, as `take` has them; None if they are others.

    Args:
      shape, sizes, starts: of the operand and its windows, as `_Windows` takes them.
      offsets: where the dims of a window are among those of all windows.
      batch: dims of the indices.
    """
    if len(starts) != 1:
        return None
    axis = starts[0]
    if any(size != (1 if dim == axis else shape[dim]) for dim, size in enumerate(sizes)):
        return None
    others = [*range(axis), *range(axis + batch, len(shape) - 1 + batch)]
    return axis if [*offsets] == others else None


def _all_within(places: Any, n: int) -> bool:
    return bool(((places >= 0) & (places < n)).all())


def _filler(dtype: np.dtype[Any]) -> Any:
    """Return the number that JAX puts where a window lies outside."""
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def scatter(write: Callable[[Any, Any, Any], Any]) -> Callable[..., Callable[..., Any]]:
    """Return NumPy's rule for a scatter.

    Args:
      write: puts values into an array at positions, in their order; positions come more than once.
    """

    def rule(
        given: Any, made: Any, *, dimension_numbers: Any, mode: Any, **_: Any
    ) -> Callable[..., Any]:
        numbers = dimension_numbers
        shape, written = given[0].shape, given[2].shape
        ones = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        own = [dim for dim in range(len(shape)) if dim not in ones]
        sizes = [1] * len(shape)
        for dim, of_update in zip(own, numbers.update_window_dims, strict=True):
            sizes[dim] = written[of_update]
        batching = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
        windows = _Windows(shape, sizes, numbers.scatter_dims_to_operand_dims, batching)
        batch = given[1].ndim - 1
        offsets = range(batch, batch + len(own))
        clip = mode == GatherScatterMode.CLIP
        starts = numbers.scatter_dims_to_operand_dims
        rows = _row_axis(shape, sizes, starts, numbers.update_window_dims, batch)

        def scattered(x: Any, indices: Any, updates: Any) -> Any:
            if rows is not None:
                places = indices[..., 0]
                if _all_within(places, x.shape[rows]):
                    out = x.copy()
                    write(out, (*[slice(None)] * rows, places), updates)
                    return out
            positions, within = windows(indices, clip)
            values = np.moveaxis(updates, numbers.update_window_dims, offsets)
            values = values.reshape(*indices.shape[:-1], *sizes)
            if not clip and not within.all():
                kept = np.broadcast_to(within, values.shape)
                positions = tuple(np.broadcast_to(p, values.shape)[kept] for p in positions)
                values = values[kept]
            out = x.copy()
            write(out, positions, values)
            return out

        return scattered

    return rule


def put(out: Any, positions: Any, values: Any) -> None:
    """Write; of several values for one place the last stays."""
    out[positions] = values
