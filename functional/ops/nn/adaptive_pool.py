"""Adaptive pooling: the window of output `i` of `n` is `[floor(i * size / n), ceil(...))`."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, is_floating, scalar_name
from ...program.op import op
from .adaptive_shapes import adaptive_sizes, all_ones
from .checks import wide
from .pool import F, Pooled, _maxima, _maxima_indexed
from .pool_shapes import Windows
from .taps import make, weighted

Array = jax.Array


def _bounds(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    i = np.arange(out)
    return i * size // out, -((-(i + 1) * size) // out)


def _adaptive_avg(dims: int, input: Array, output_size: Any) -> Array:
    if dims > 1 and all_ones(dims, output_size):
        return _mean(dims, input, output_size)
    outs = adaptive_sizes("avg", dims, input, output_size)
    if input.size == 0 or 0 in outs:
        return jnp.zeros(input.shape[:-dims] + outs, input.dtype)
    x = wide(input)
    for axis, out in zip(range(x.ndim - dims, x.ndim), outs, strict=True):
        size = x.shape[axis]
        if size == out:
            continue
        if size % out == 0:
            shape = x.shape[:axis] + (out, size // out) + x.shape[axis + 1 :]
            x = x.reshape(shape).mean(axis + 1)
            continue
        start, end = _bounds(size, out)  # of windows that overlap
        index = start[:, None] + np.arange((end - start).max())
        weights = 1 / (end - start)[:, None]
        x = weighted(x, axis, make(size, index, weights, index < end[:, None]))
    return cast(x, input.dtype)


def _mean(dims: int, input: Array, output_size: Any) -> Array:
    """Average all, which PyTorch does by `mean`: of any rank, and NaN of nothing."""
    if isinstance(output_size, (list, tuple)) and input.ndim <= dims:
        raise ValueError(f"Input dimension should be at least {dims + 1}")
    if not is_floating(input.dtype):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {scalar_name(input.dtype)}"
        )
    if input.ndim < dims:
        low = max(input.ndim, 1)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-low}, {low - 1}], but got "
            f"{-low - 1})"
        )
    axes = tuple(range(input.ndim - dims, input.ndim))
    return cast(wide(input).mean(axes, keepdims=True), input.dtype)


def _adaptive_max(dims: int, input: Array, output_size: Any, indexed: bool) -> Any:
    outs = adaptive_sizes("max", dims, input, output_size)
    spatial = input.shape[-dims:]
    if input.size == 0 or 0 in outs:
        empty = jnp.zeros(input.shape[:-dims] + outs, input.dtype)
        return Pooled(empty, jnp.zeros(empty.shape, np.int64)) if indexed else empty
    if all(n % out == 0 for n, out in zip(spatial, outs, strict=True)):
        kernel = tuple(n // out for n, out in zip(spatial, outs, strict=True))
        w = Windows(kernel, kernel, (0,) * dims, (1,) * dims, outs)
        return _maxima_indexed(input, w) if indexed else _maxima(input, w)
    flat = jnp.arange(math.prod(spatial), dtype=np.int64).reshape(spatial)
    x, where = input, jnp.broadcast_to(flat, input.shape)
    for axis, out in reversed(list(zip(range(x.ndim - dims, x.ndim), outs, strict=True))):
        start, end = _bounds(x.shape[axis], out)
        best: Any = None
        place: Any = None
        for i in range(int((end - start).max())):
            # Past a window's end its last element comes again, which never wins a tie.
            index = np.minimum(start + i, end - 1)
            other, there = jnp.take(x, index, axis), jnp.take(where, index, axis)
            if best is None:
                best, place = other, there
                continue
            better = (other > best) | (other != other)
            best, place = jnp.where(better, other, best), jnp.where(better, there, place)
        x, where = best, place
    return Pooled(x, where) if indexed else x


def _backward(kind: str, dims: int) -> str:
    return "SqueezeBackward1" if dims == 1 else f"Adaptive{kind}Pool{dims}DBackward0"


def _enter(dims: int) -> None:
    """Enter the three ops of one rank."""

    def average(input: Array, output_size: Any) -> Array:
        return _adaptive_avg(dims, input, output_size)

    def maximum(input: Array, output_size: Any) -> Array:
        return _adaptive_max(dims, input, output_size, False)

    def indexed(input: Array, output_size: Any) -> Pooled:
        return _adaptive_max(dims, input, output_size, True)

    for fn, name, kind, what in (
        (average, f"adaptive_avg_pool{dims}d", "Avg", "Average"),
        (maximum, f"adaptive_max_pool{dims}d", "Max", "Take the maximum of"),
        (indexed, f"adaptive_max_pool{dims}d_with_indices", "Max",
         "Take the maximum and its flat index of"),
    ):  # fmt: skip
        fn.__name__ = fn.__qualname__ = name
        fn.__doc__ = f"{what} windows that divide {dims} dims into `output_size` parts."
        saves = {"self": "*", "result1": "*"} if fn is indexed else {"self": "*"}
        globals()[name] = op(
            namespace=F, method=False, backward=_backward(kind, dims), saves=saves
        )(fn)


for _dims in (1, 2, 3):
    _enter(_dims)
