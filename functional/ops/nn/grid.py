"""Sampling of images at points: `grid_sample` and the grids of affine maps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, is_floating, scalar_name
from ...program.op import op
from .checks import size_list, wide

Array = jax.Array

F = "nn.functional"


def _reflected(x: Array, low: float, high: float) -> Array:
    """Fold `x` into [low, high] by reflection at both."""
    span = high - low
    if span == 0:
        return x * 0
    distance = jnp.abs(x - low)
    turns = jnp.floor(distance / span)
    rest = distance - jax.lax.stop_gradient(turns) * span
    return jnp.where(turns % 2 == 0, rest + low, span - rest + low)


def _places(x: Array, size: int, align: bool) -> Array:
    """Turn grid coordinates in [-1, 1] into places of pixels."""
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


def _padded(x: Array, size: int, padding_mode: str, align: bool) -> Array:
    """Move places into the image as the padding mode says."""
    if padding_mode == "reflection":
        x = _reflected(x, 0.0, size - 1.0) if align else _reflected(x, -0.5, size - 0.5)
    if padding_mode != "zeros":
        zero, top = jnp.zeros((), x.dtype), jnp.full((), size - 1, x.dtype)
        # The gradient on the border itself is 0, as that of PyTorch's clip.
        x = jnp.where(x <= 0, zero, jnp.where(x >= top, top, x))
    return x


def _cubic(t: Array) -> list[Array]:
    """Return the weights of the four pixels around a place, `t` behind the second (Keys, -0.75)."""
    a = -0.75

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


# Of a dim: pixels to read (as floats, which may lie outside) with their weights.
Taps = list[tuple[Array, Any]]


def _taps(x: Array, size: int, mode: str, padding_mode: str, align: bool) -> Taps:
    """Return the pixels that a coordinate reads along its dim, and their weights."""
    place = _places(x, size, align)
    if mode != "bicubic":
        place = _padded(place, size, padding_mode, align)
    if mode == "nearest":
        return [(jnp.round(place), None)]
    floor = jax.lax.stop_gradient(jnp.floor(place))
    t = place - floor
    if mode == "bilinear":
        return [(floor, 1 - t), (floor + 1, t)]
    steps = [_padded(floor + s, size, padding_mode, align) for s in (-1, 0, 1, 2)]
    return list(zip(steps, _cubic(t), strict=True))


def _check(input: Array, grid: Array, mode: str, padding_mode: str) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {size_list(input.shape)} and grid with sizes {size_list(grid.shape)}"
        )
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but "
            f"got grid with sizes {size_list(grid.shape)}"
        )
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {size_list(input.shape)} and grid with sizes "
            f"{size_list(grid.shape)}"
        )
    for dim in range(2, input.ndim):
        if not input.shape[dim]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {size_list(input.shape)} with dimension {dim} being empty"
            )
    if mode == "bicubic" and input.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not is_floating(input.dtype):
        kernel = f"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input.dtype)}'")
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(grid.dtype)}"
        )


@op(
    namespace=F, method=False, backward="GridSampler2DBackward0",
    saves={"input": "*", "grid": "*"},
)  # fmt: skip
def grid_sample(
    input: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:  # fmt: skip
    """Take the input's values at the points of `grid`, whose last dim is (x, y[, z])."""
    _check(input, grid, mode, padding_mode)
    sizes = input.shape[2:]
    x, points = wide(input), wide(grid)
    rows = [
        _taps(points[..., -1 - i], n, mode, padding_mode, bool(align_corners))
        for i, n in enumerate(sizes)
    ]
    flat = x.reshape(*x.shape[:2], math.prod(sizes))
    total = None
    for corner in itertools.product(*rows):
        weight: Any = None
        inside: Any = None
        index: Any = 0
        for (at, part), n in zip(corner, sizes, strict=True):
            if part is not None:
                weight = part if weight is None else weight * part
            within = (at >= 0) & (at < n)
            inside = within if inside is None else inside & within
            index = index * n + jnp.clip(jnp.where(within, at, 0), 0, n - 1).astype(np.int64)
        shape = index.shape
        places = index.reshape(shape[0], 1, math.prod(shape[1:]))
        taken = jnp.take_along_axis(flat, places, axis=2, mode="clip")
        value = taken.reshape(*x.shape[:2], *shape[1:])
        value = jnp.where(inside[:, None], value, jnp.zeros((), x.dtype))
        if weight is not None:
            value = value * weight[:, None]
        total = value if total is None else total + value
    return cast(total, input.dtype)


@op(
    namespace=F, method=False, backward="GridSampler3DBackward0",
    saves={"input": "*", "grid": "*"},
)  # fmt: skip
def _grid_sample3d(
    input: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:  # fmt: skip
    """Sample volumes as `grid_sample` does; the node has another name."""
    return grid_sample(input, grid, mode, padding_mode, align_corners)


@op(namespace=F, method=False, backward="AffineGridGeneratorBackward0")
def affine_grid(theta: Array, size: Sequence[int], align_corners: bool | None = None) -> Array:
    """Make the grid `(N, *spatial, dims)` of the affine maps `theta` `(N, dims, dims + 1)`."""
    if size[0] != theta.shape[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{size[0]}, {len(size) - 1}] but got: [{theta.shape[0]}, {len(size) - 1}]."
        )
    spatial = tuple(size)[2:]
    dims = len(spatial)
    axes = []
    for n in spatial:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(line if align_corners else line * ((n - 1) / n))
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(spatial)], -1).reshape(-1, dims + 1)
    points = jnp.einsum("pk,ndk->npd", jnp.asarray(base, theta.dtype), theta)
    return points.reshape(theta.shape[0], *spatial, dims)
