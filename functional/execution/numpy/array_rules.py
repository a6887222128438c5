"""Rules in NumPy of JAX's primitives that move elements and compute none."""

from __future__ import annotations

from typing import Any

import numpy as np


class Unsupported(Exception):
    """Raised for a program that NumPy leaves to XLA."""


def _reshape(given: Any, made: Any, *, new_sizes: Any, dimensions: Any, **_: Any) -> Any:
    if dimensions is not None:
        return lambda x: x.transpose(dimensions).reshape(new_sizes)
    return lambda x: x.reshape(new_sizes)


def _tile(given: Any, made: Any, *, reps: Any) -> Any:
    return lambda x: np.tile(x, reps)


def _broadcast(given: Any, made: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    if len(given) != 1:
        raise Unsupported
    sizes = [1] * len(shape)
    for size, dim in zip(given[0].shape, broadcast_dimensions, strict=True):
        sizes[dim] = size
    return lambda x: np.broadcast_to(x.reshape(sizes), shape)


def _slice(given: Any, made: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    steps = strides or [1] * len(start_indices)
    at = tuple(slice(*x) for x in zip(start_indices, limit_indices, steps, strict=True))
    return lambda x: x[at]


def _split(given: Any, made: Any, *, sizes: Any, axis: int) -> Any:
    if len(sizes) == 1:
        return lambda x: x
    places = np.cumsum(sizes)[:-1]
    return lambda x: np.split(x, places, axis)


def _select(given: Any, made: Any, **_: Any) -> Any:
    if given[0].dtype != np.bool_ or len(given) != 3:
        raise Unsupported
    return lambda which, no, yes: np.where(which, yes, no)


def _iota(given: Any, made: Any, *, dtype: Any, shape: Any, dimension: int, **_: Any) -> Any:
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    out = np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(sizes), shape)
    return lambda: out


def _transpose(given: Any, made: Any, *, permutation: Any) -> Any:
    return lambda x: x.transpose(permutation)


def _squeeze(given: Any, made: Any, *, dimensions: Any) -> Any:
    shape, dims = made[0].shape, len(given[0].shape)
    return lambda x: x.reshape(shape + x.shape[dims:])  # a random key has words behind its dims


def _concatenate(given: Any, made: Any, *, dimension: int) -> Any:
    return lambda *parts: np.concatenate(parts, dimension)


def _stack(given: Any, made: Any, *, axis: int) -> Any:
    return lambda *parts: np.stack(parts, axis)


def _unstack(given: Any, made: Any, *, axis: int) -> Any:
    if len(made) == 1:
        return lambda x: x.squeeze(axis)
    return lambda x: np.moveaxis(x, axis, 0)


def _within(shape: Any, sizes: Any, starts: Any) -> tuple[slice, ...]:
    """Return where a part of these sizes lies; a start that is too far is moved until it fits."""
    first = [min(max(int(s), 0), m - n) for s, m, n in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(i, i + n) for i, n in zip(first, sizes, strict=True))


def _part(given: Any, made: Any, *, slice_sizes: Any) -> Any:
    return lambda x, *starts: x[_within(x.shape, slice_sizes, starts)]


def _part_written(given: Any, made: Any) -> Any:
    def written(x: Any, part: Any, *starts: Any) -> Any:
        out = x.copy()
        out[_within(x.shape, part.shape, starts)] = part
        return out

    return written


def _reversed(given: Any, made: Any, *, dimensions: Any) -> Any:
    return lambda x: np.flip(x, dimensions)


def _length(given: Any, made: Any, *, dim: int) -> Any:
    return lambda: np.asarray(dim)
