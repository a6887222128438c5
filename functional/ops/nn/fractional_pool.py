"""Fractional max pooling: windows at pseudo-random places (Graham, arXiv:1412.6071)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...program.op import op
from .checks import ints, need_float, size_list

Array = jax.Array
Ints = int | Sequence[int]

F = "nn.functional"


class FractionalPooled(NamedTuple):
    """Maxima and their flat positions in the spatial dims of the input."""

    values: Array
    indices: Array


def _starts(sample: Array, size: int, out: int, kernel: int) -> Array:
    """Return where windows start, `(N, C, out)`, from draws `(N, C)` in [0, 1)."""
    last = jnp.full((*sample.shape, 1), size - kernel, np.int64)
    if out == 1:
        return last
    alpha = jnp.asarray((size - kernel) / (out - 1), sample.dtype)
    steps = jnp.arange(out - 1, dtype=sample.dtype)
    places = jnp.trunc((steps + sample[..., None]) * alpha) - jnp.trunc(sample * alpha)[..., None]
    return jnp.concatenate([places.astype(np.int64), last], -1)


def _pool(dims: int, x: Array, kernel_size: Ints, output_size: Ints, samples: Array) -> Any:
    kernel = ints(kernel_size, dims, _either(dims, "kernel_size"))
    out = ints(output_size, dims, _either(dims, "output_size"))
    _errors(dims, x, kernel, out, samples)
    batched = x if x.ndim == dims + 2 else x[None]
    if not batched.size:
        empty = batched.shape[:2] + out
        return FractionalPooled(jnp.zeros(empty, x.dtype), jnp.zeros(empty, np.int64))
    spatial = batched.shape[2:]
    n, c = batched.shape[:2]
    where: Any = jnp.zeros((n, c) + (1,) * (2 * dims), np.int64)
    for i in range(dims):
        # PyTorch's draws are in the order (T, H, W), but (W, H) for two dims.
        draw = samples[:n, :, i if dims == 3 else dims - 1 - i]
        start = _starts(draw, spatial[i], out[i], kernel[i])
        place = start[..., None] + jnp.arange(kernel[i])  # (N, C, out, kernel)
        shape = [n, c] + [1] * (2 * dims)
        shape[2 + i], shape[2 + dims + i] = out[i], kernel[i]
        where = where * spatial[i] + place.reshape(shape)
    where = where.reshape(n, c, int(np.prod(out)), int(np.prod(kernel)))
    flat = batched.reshape(n, c, -1)
    windows = jnp.take_along_axis(flat[:, :, None], where, axis=-1, mode="clip")
    # The first NaN wins, as PyTorch's comparison has it, else the first maximum.
    bad = jnp.isnan(windows)
    best = jnp.where(bad.any(-1), jnp.argmax(bad, -1), jnp.argmax(windows, -1))[..., None]
    whole = (n, c, *out)
    indices = jnp.take_along_axis(where, best, -1).reshape(whole)
    values = jnp.take_along_axis(windows, best, -1).reshape(whole)
    made = FractionalPooled(values, indices)
    return made if x.ndim == dims + 2 else FractionalPooled(made.values[0], made.indices[0])


def _either(dims: int, name: str) -> str:
    word = "two" if dims == 2 else "three"
    return (
        f"fractional_max_pool{dims}d: {name} must either be a single Int or tuple of "
        f"{word if dims == 2 else 'three'} Ints"
    )


def _errors(
    dims: int, x: Array, kernel: tuple[int, ...], out: tuple[int, ...], samples: Array
) -> None:
    name = f"fractional_max_pool{dims}d"
    shape = x.shape[1:] if x.ndim == dims + 2 else x.shape
    if x.ndim not in (dims + 1, dims + 2) or 0 in shape:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
            f"has sizes {size_list(x.shape)}"
        )
    axes = ("height", "width") if dims == 2 else ("time", "height", "width")
    asked = [*zip(axes, shape[1:], kernel, out, strict=True)]
    for axis, size, k, o in asked if dims == 2 else (asked[0], asked[2], asked[1]):
        if o + k - 1 > size - (dims == 3):
            said = name + "_out" * (dims == 3)
            raise RuntimeError(
                f"{said}(): pool {axis} {k} too large relative to input {axis} {size}"
            )
    need_float(x, f"{name}_out_frame")
    if samples.dtype != x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions got {samples.ndim}")
    if samples.shape[0] < (x.shape[0] if x.ndim == dims + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != shape[0]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {dims} got {samples.shape[2]}."
        )


def _enter(dims: int) -> None:
    def body(
        input: Array, kernel_size: Ints, output_size: Ints, random_samples: Array
    ) -> FractionalPooled:
        return _pool(dims, input, kernel_size, output_size, random_samples)  # type: ignore[no-any-return]

    body.__name__ = body.__qualname__ = f"_fractional_max_pool{dims}d"
    body.__doc__ = (
        f"Return maxima (and their places) of windows of {dims} dims where the samples say."
    )
    op(
        name=f"_fractional_max_pool{dims}d", namespace=F, method=False,
        backward=f"FractionalMaxPool{dims}DBackward0", saves={"self": "*", "result1": "*"},
    )(body)  # fmt: skip


for _dims in (2, 3):
    _enter(_dims)
