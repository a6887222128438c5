"""Rules in NumPy of JAX's reductions, scans and sorts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .array_rules import Unsupported

_Rule = Callable[..., Callable[..., Any]]


def _reduced(fn: Any, kinds: str = "iuf") -> _Rule:
    def rule(given: Any, made: Any, *, axes: Any, **parameters: Any) -> Callable[..., Any]:
        if given[0].dtype.kind not in kinds or not given[0].size:  # there is no greatest of none
            raise Unsupported
        axes = tuple(axes)
        return lambda x: fn(x, axis=axes)

    return rule


def _running(fn: Any) -> _Rule:
    def rule(given: Any, made: Any, *, axis: int, reverse: bool) -> Callable[..., Any]:
        if given[0].dtype.kind not in "iuf":
            raise Unsupported
        if reverse:
            return lambda x: np.flip(fn(np.flip(x, axis), axis, x.dtype), axis)
        return lambda x: fn(x, axis, x.dtype)

    return rule


def _cumsum(x: Any, axis: int, dtype: Any) -> Any:
    return np.cumsum(x, axis, dtype) + dtype.type(0)  # XLA begins with 0: no -0.0


def _sum(x: Any, axis: Any) -> Any:
    return np.sum(x, axis) + x.dtype.type(0)


def _position(fn: Any) -> _Rule:
    def rule(given: Any, made: Any, *, axes: Any, index_dtype: Any) -> Callable[..., Any]:
        (axis,) = axes
        if not given[0].shape[axis]:
            raise Unsupported
        return lambda x: fn(x, axis)  # a NaN is greatest and least in both

    return rule


def _sort(given: Any, made: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if num_keys != 1 or not is_stable:
        raise Unsupported

    def ordered(*arrays: Any) -> Any:
        order = np.argsort(arrays[0], dimension, "stable")
        found = [np.take_along_axis(x, order, dimension) for x in arrays]
        return found if len(found) > 1 else found[0]

    return ordered


def _greatest(given: Any, made: Any, *, k: int, axis: int, **_: Any) -> Any:
    if given[0].dtype != np.float32:
        raise Unsupported
    first = (..., slice(k))

    def greatest(x: Any) -> Any:
        # XLA orders floats as the integers that their bits are: -0.0 below 0, NaN by its sign.
        bits = np.moveaxis(x, axis, -1).copy().view(np.int32)
        keys = np.where(bits < 0, np.iinfo(np.int32).max - bits, bits)
        order = np.moveaxis(np.argsort(~keys, -1, "stable")[first], -1, axis)
        return np.take_along_axis(x, order, axis), order

    return greatest


def _weighted(given: Any, made: Any, *, axis: int, taps: Any) -> Any:
    index, weights, there = taps.table()
    dtype, shape = given[0].dtype, (-1,) + (1,) * (len(given[0].shape) - axis - 1)
    rows = [
        (i, w.astype(dtype).reshape(shape), None if any_.all() else any_.reshape(shape))
        for i, w, any_ in zip(index.T, weights.T, there.T, strict=True)
    ]

    def sums(x: Any) -> Any:
        if not x.size:
            return np.zeros(made[0].shape, dtype)
        total: Any = None
        for i, w, kept in rows:
            part = np.take(x, i, axis) * w
            if kept is not None:
                part = np.where(kept, part, dtype.type(0))
            total = part if total is None else total + part
        return total

    return sums
