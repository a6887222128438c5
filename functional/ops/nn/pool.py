"""Pooling over windows, dim by dim: a window's maximum or sum is that of its rows'.

Shifted slices are folded instead of `lax.reduce_window`, which XLA:CPU runs several times slower,
and so is its gradient. Ties go to the first element, as in PyTorch, since the folds keep order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, is_floating, is_integral, scalar_name
from ...program.op import op
from .checks import wide
from .pool_shapes import Windows, avg_windows, max_windows

Array = jax.Array
Ints = int | Sequence[int]

F = "nn.functional"


class Pooled(NamedTuple):
    """Maxima and their flat positions in the (unpadded) spatial dims of the input."""

    values: Array
    indices: Array


def _slices(x: Array, w: Windows, dim: int, filler: Any) -> list[Array]:
    """Return, for each place in the window along spatial dim `dim`, the elements there."""
    axis = x.ndim - len(w.kernel) + dim
    size, out, step = x.shape[axis], w.out[dim], w.stride[dim]
    reach = (out - 1) * step + w.dilation[dim] * (w.kernel[dim] - 1) + 1
    pads = [(0, 0, 0)] * x.ndim
    pads[axis] = (w.padding[dim], reach - size - w.padding[dim], 0)
    if pads[axis] != (0, 0, 0):
        x = jax.lax.pad(x, jnp.asarray(filler, x.dtype), pads)
    return [
        jax.lax.slice_in_dim(
            x, i * w.dilation[dim], i * w.dilation[dim] + (out - 1) * step + 1, step, axis
        )
        for i in range(w.kernel[dim])
    ]


def _lowest(dtype: Any) -> Any:
    return -np.inf if is_floating(dtype) else np.iinfo(dtype).min


def _maxima(x: Array, w: Windows) -> Array:
    """Return the maximum of each window; NaN wins."""
    for dim in reversed(range(len(w.kernel))):
        best, *others = _slices(x, w, dim, _lowest(x.dtype))
        for other in others:
            best = jnp.where((other > best) | (other != other), other, best)
        x = best
    return x


def _maxima_indexed(x: Array, w: Windows) -> Pooled:
    """Return the maximum of each window and where it is."""
    spatial = x.shape[-len(w.kernel) :]
    where = jnp.arange(math.prod(spatial), dtype=np.int64).reshape(spatial)
    where = jnp.broadcast_to(where, x.shape)
    for dim in reversed(range(len(w.kernel))):
        best, *others = _slices(x, w, dim, _lowest(x.dtype))
        place, *places = _slices(where, w, dim, -1)
        for other, there in zip(others, places, strict=True):
            # A place of -1 is padding: it never wins, whatever it is compared with.
            better = (other > best) | (other != other) | ((place < 0) & (there >= 0))
            best = jnp.where(better, other, best)
            place = jnp.where(better, there, place)
        x, where = best, place
    return Pooled(x, where)


def _max_pool(
    dims: int, input: Array, kernel_size: Ints, stride: Ints | None, padding: Ints,
    dilation: Ints, ceil_mode: bool, indexed: bool,
) -> Any:  # fmt: skip
    w = max_windows(dims, input, kernel_size, stride, padding, dilation, ceil_mode, indexed)
    return _maxima_indexed(input, w) if indexed else _maxima(input, w)


def _enter_max(dims: int) -> None:
    """Enter `max_pool{dims}d`, and `max_pool{dims}d_with_indices` (PyTorch's own name)."""

    def plain(
        input: Array, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
        dilation: Ints = 1, ceil_mode: bool = False,
    ) -> Array:  # fmt: skip
        return _max_pool(dims, input, kernel_size, stride, padding, dilation, ceil_mode, False)

    def indexed(
        input: Array, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
        dilation: Ints = 1, ceil_mode: bool = False,
    ) -> Pooled:  # fmt: skip
        return _max_pool(dims, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    backward = "SqueezeBackward1" if dims == 1 else f"MaxPool{dims}DWithIndicesBackward0"
    for fn, name in ((plain, f"max_pool{dims}d"), (indexed, f"max_pool{dims}d_with_indices")):
        fn.__name__ = fn.__qualname__ = name
        what = "the maximum" if fn is plain else "the maximum and its flat index"
        fn.__doc__ = f"Take {what} of each window of {dims} dims; padding never wins."
        saves = {"self": "*"} if fn is plain else {"self": "*", "result1": "*"}
        globals()[name] = op(namespace=F, method=False, backward=backward, saves=saves)(fn)


for _dims in (1, 2, 3):
    _enter_max(_dims)


def _sums(x: Array, w: Windows) -> Array:
    total: Any = x
    for dim in reversed(range(len(w.kernel))):
        total = sum(_slices(total, w, dim, 0))
    return total


def _divisor(input: Array, w: Windows, count_include_pad: bool) -> Any:
    """Return how many elements each window has: a number, or an array where windows differ."""
    spatial = input.shape[-len(w.kernel) :]
    count: Any = 1
    for size, k, s, p, out in zip(spatial, w.kernel, w.stride, w.padding, w.out, strict=True):
        inside = size + p if count_include_pad else size
        if (count_include_pad or not p) and (out - 1) * s - p + k <= inside:
            count = np.multiply.outer(count, np.full(1, k))  # none reaches out of it
            continue
        start = np.arange(out) * s - p
        end = np.minimum(start + k, size + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        count = np.multiply.outer(count, end - start)
    return int(count.flat[0]) if (count == count.flat[0]).all() else count


def _avg_pool(
    dims: int, input: Array, kernel_size: Ints, stride: Ints | None, padding: Ints,
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    w = avg_windows(dims, input, kernel_size, stride, padding, ceil_mode)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if not is_floating(input.dtype) and input.dtype != np.dtype("int64"):
        kernel = "avg_pool3d_out_frame" if dims == 3 else "avg_pool2d"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input.dtype)}'")
    if input.size == 0:
        return jnp.zeros(input.shape[:-dims] + w.out, input.dtype)
    total = _sums(wide(input), w)
    divisor = divisor_override
    if divisor is None:
        divisor = _divisor(input, w, count_include_pad)
    if is_integral(input.dtype):
        counts = jnp.broadcast_to(jnp.asarray(divisor, total.dtype), total.shape)
        return cast(jax.lax.div(total, counts), input.dtype)
    return cast(total / jnp.asarray(divisor, total.dtype), input.dtype)


@op(namespace=F, method=False, backward="SqueezeBackward1", saves={"self": "*"})
def avg_pool1d(
    input: Array, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """Average each window of 1 dim."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@op(namespace=F, method=False, backward="AvgPool2DBackward0", saves={"self": "*"})
def avg_pool2d(
    input: Array, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """Average each window of 2 dims."""
    rest = (padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool(2, input, kernel_size, stride, *rest)


@op(namespace=F, method=False, backward="AvgPool3DBackward0", saves={"self": "*"})
def avg_pool3d(
    input: Array, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """Average each window of 3 dims."""
    rest = (padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool(3, input, kernel_size, stride, *rest)
