"""Rearrangements of images: pixel and channel shuffles, sliding blocks and their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import is_integral, scalar_name
from ...program.op import op
from .checks import ints, size_list

Array = jax.Array
Ints = int | Sequence[int]

F = "nn.functional"

ALSO_FUNCTIONAL = ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")


def _need_images(name: str, input: Array) -> None:
    if input.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{input.ndim} dimension(s)"
        )


@op(method=False)
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Move channels into `upscale_factor` times larger images."""
    _need_images("pixel_shuffle", input)
    r = upscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    x = input.reshape(math.prod(lead), c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(*lead, c // (r * r), h * r, w * r)


@op(method=False)
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Move pixels into channels of `downscale_factor` times smaller images."""
    _need_images("pixel_unshuffle", input)
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    for name, dim, n in (("height", -2, h), ("width", -1, w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={n} is not divisible by {r}"
            )
    x = input.reshape(math.prod(lead), c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(*lead, c * r * r, h // r, w // r)


@op(method=False)
def channel_shuffle(input: Array, groups: int) -> Array:
    """Interleave `groups` groups of channels."""
    if input.ndim <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{size_list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    c = input.shape[1]
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    x = input.reshape(input.shape[0], groups, c // groups, *input.shape[2:])
    return x.swapaxes(1, 2).reshape(input.shape)


def _pairs(
    kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> tuple[tuple[int, ...], ...]:
    values = []
    for name, value in (
        ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding),
        ("stride", stride),
    ):  # fmt: skip
        count = 2 if isinstance(value, (int, np.integer)) else len(value)
        values.append(ints(value, 2, f"It is expected {name} equals to 2, but got size {count}"))
    kernel, gaps, pads, steps = values

    def shown(name: str, pair: tuple[int, ...]) -> str:
        return f"but got {name}_height: {pair[0]} {name}_width: {pair[1]}"

    if min(kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, {shown('kernel', kernel)}")
    if min(gaps) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, {shown('dilation', gaps)}")
    if min(pads) < 0:
        raise RuntimeError(f"padding should be non-negative, {shown('pad', pads)}")
    if min(steps) <= 0:
        raise RuntimeError(f"stride should be greater than zero, {shown('stride', steps)}")
    return tuple(values)


def _blocks(
    sizes: Sequence[int], kernel: Sequence[int], gaps: Sequence[int], pads: Sequence[int],
    steps: Sequence[int],
) -> tuple[int, ...]:  # fmt: skip
    rows = zip(sizes, kernel, gaps, pads, steps, strict=True)
    spans = [(n + 2 * p - d * (k - 1) - 1, s) for n, k, d, p, s in rows]
    # C++ division truncates towards zero.
    return tuple(span // s + 1 if span >= 0 else 1 - -span // s for span, s in spans)


def _paren(values: Sequence[int]) -> str:
    return "(" + ", ".join(str(v) for v in values) + ")"


@op(namespace=F, method=False, backward="Im2ColBackward0")
def unfold(
    input: Array, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Array:
    """Lay out sliding blocks of `(N, C, H, W)` as columns `(N, C * block, blocks)`."""
    kernel, gaps, pads, steps = _pairs(kernel_size, dilation, padding, stride)
    if input.ndim < 3:
        low = max(input.ndim, 1)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-low}, {low - 1}], but got "
            f"{input.ndim})"
        )
    inner = input.shape[1:] if input.ndim == 4 else input.shape
    if input.ndim > 4 or 0 in inner:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {size_list(input.shape)}"
        )
    counts = _blocks(input.shape[-2:], kernel, gaps, pads, steps)
    if any(n < 1 for n in counts):
        raise RuntimeError(
            f"Given input with spatial size {_paren(input.shape[-2:])}, "
            f"kernel_size={_paren(kernel)}, dilation={_paren(gaps)}, padding={_paren(pads)}, "
            f"calculated shape of the array of sliding blocks as {_paren(counts)}, but its "
            "components must be at least one."
        )
    if is_integral(input.dtype) and input.dtype != np.dtype(bool):
        raise NotImplementedError(
            f"\"im2col_out_cpu\" not implemented for '{scalar_name(input.dtype)}'"
        )
    x = input if input.ndim == 4 else input[None]
    x = jnp.pad(x, ((0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2))
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            start = (0, 0, i * gaps[0], j * gaps[1])
            stop = (*x.shape[:2],) + tuple(
                s + (n - 1) * t + 1 for s, n, t in zip(start[2:], counts, steps, strict=True)
            )
            parts.append(jax.lax.slice(x, start, stop, (1, 1, *steps)))
    rows = x.shape[1] * kernel[0] * kernel[1]
    y = jnp.stack(parts, 2).reshape(x.shape[0], rows, counts[0] * counts[1])
    return y if input.ndim == 4 else y[0]


@op(namespace=F, method=False, backward="Col2ImBackward0")
def fold(
    input: Array, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
    stride: Ints = 1,
) -> Array:  # fmt: skip
    """Sum columns `(N, C * block, blocks)` back into images of `output_size`."""
    count = 2 if isinstance(output_size, (int, np.integer)) else len(output_size)
    size = ints(output_size, 2, f"It is expected output_size equals to 2, but got size {count}")
    kernel, gaps, pads, steps = _pairs(kernel_size, dilation, padding, stride)
    inner = input.shape[1:] if input.ndim == 3 else input.shape
    if input.ndim not in (2, 3) or 0 in inner:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {size_list(input.shape)}"
        )
    block = kernel[0] * kernel[1]
    rows, columns = input.shape[-2:]
    if rows % block:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={rows} and kernel_size={_paren(kernel)}."
        )
    counts = _blocks(size, kernel, gaps, pads, steps)
    if columns != counts[0] * counts[1]:
        raise RuntimeError(
            f"Given output_size={_paren(size)}, kernel_size={_paren(kernel)}, "
            f"dilation={_paren(gaps)}, padding={_paren(pads)}, stride={_paren(steps)}, expected "
            "size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got "
            f"input.size(2)={columns}."
        )
    if input.dtype.kind in "iu":
        kind = scalar_name(input.dtype)
        raise NotImplementedError(f"\"col2im_out_cpu\" not implemented for '{kind}'")
    x = input.reshape(-1, rows // block, *kernel, *counts)
    total: Any = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            widths = [(0, 0, 0), (0, 0, 0)]
            for n, at, d, p, s, m in zip(size, (i, j), gaps, pads, steps, counts, strict=True):
                low = at * d - p
                widths.append((low, n - low - ((m - 1) * s + 1), s - 1))
            part = jax.lax.pad(x[:, :, i, j], jnp.zeros((), x.dtype), widths)
            total = part if total is None else total + part
    return total if input.ndim == 3 else total[0]
