"""Resampling: each dim is a sum of a few taps, found when the program is traced."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, is_floating, scalar_name
from ...program.op import op
from .adaptive_pool import _adaptive_avg
from .antialias import antialias_taps, sum_bytes
from .checks import wide
from .taps import Taps, as_matrix, make, weighted

Array = jax.Array

F = "nn.functional"

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_ANTIALIASED = (np.dtype("float32"), np.dtype("float64"), np.dtype("uint8"))
_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}


def _ratio(size: int, out: int, scale: float | None, align: bool) -> float:
    if align:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1 / scale if scale else size / out


def _nearest(size: int, out: int, scale: float | None, exact: bool, dims: int) -> np.ndarray:
    if dims == 2 and not exact and out in (size, 2 * size):
        # Of images PyTorch looks at the lengths alone then, whatever the scale comes to. (Of other
        # inputs its gradients do, but not its values.)
        return np.arange(out) // (out // size)
    # PyTorch computes these places in float32.
    ratio = np.float32(1 / scale) if scale else np.float32(size) / np.float32(out)
    places = np.arange(out, dtype=np.float32) + np.float32(0.5 if exact else 0)
    return np.minimum((places * ratio).astype(np.int64), size - 1)


def _taps(mode: str, size: int, out: int, scale: float | None, align: bool) -> Taps:
    """Return what each of `out` places reads, linear or cubic (Keys, a = -0.75)."""
    ratio, places = _ratio(size, out, scale, align), np.arange(out)
    source = places * ratio if align else (places + 0.5) * ratio - 0.5
    cubic = mode == "bicubic"
    if not cubic:
        source = np.maximum(source, 0)
    left = np.floor(source).astype(np.int64)
    t = source - left
    if not cubic:
        # Where nothing is resized PyTorch reads each place twice, not its neighbor.
        taps = [(0, 1 - t), (int(size != out), t)]
    else:
        a = -0.75

        def near(x: np.ndarray) -> np.ndarray:
            return ((a + 2) * x - (a + 3)) * x * x + 1

        def far(x: np.ndarray) -> np.ndarray:
            return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

        taps = [(-1, far(t + 1)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))]
    index = np.stack([np.clip(left + shift, 0, size - 1) for shift, _ in taps], 1)
    return make(size, index, np.stack([weight for _, weight in taps], 1))


def _sizes(
    input: Array, size: Any, scale_factor: Any, mode: str, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the output's spatial sizes, and the scales that coordinates follow."""
    spatial = input.shape[2:]
    dims = len(spatial)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if isinstance(size, (int, np.integer)):
            return (int(size),) * dims, (None,) * dims
        if len(size) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(spatial)} and output size of {size}. Please "
                "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, "
                "o2, ...,oK) format."
            )
        return tuple(int(n) for n in size), (None,) * dims
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != dims:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got "
                f"input with spatial dimensions of {list(spatial)} and scale_factor of shape "
                f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
                "and scale_factor in (s1, s2, ...,sK) format."
            )
        scales = tuple(float(s) for s in scale_factor)
    else:
        scales = (float(scale_factor),) * dims
    out = tuple(math.floor(n * s) for n, s in zip(spatial, scales, strict=True))
    return out, (None,) * dims if recompute else scales


def _check_dtype(dtype: Any, mode: str, dims: int, antialias: bool) -> None:
    """Raise as PyTorch's kernels do for dtypes that they do not have."""
    if antialias:
        if dtype not in _ANTIALIASED:
            raise NotImplementedError(
                f"\"compute_index_ranges_weights\" not implemented for '{scalar_name(dtype)}'"
            )
        return
    plain = "nearest" if "nearest" in mode else "cubic" if mode == "bicubic" else "linear"
    bytes_too = plain == "nearest" or dims == 2
    if not is_floating(dtype) and not (bytes_too and dtype == np.dtype("uint8")):
        kernel = f"compute_indices_weights_{plain}"
        if dims == 2 and plain != "cubic":
            kernel = f"upsample_{'nearest' if plain == 'nearest' else mode}2d_channels_last"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def _mix(
    x: Array, mode: str, axis: int, out: int, scale: float | None, align: bool, antialias: bool
) -> Array:
    """Resample `axis` of `x` to `out` weighted sums."""
    n, byte = x.shape[axis], x.dtype == np.dtype("uint8")
    dtype = np.dtype("float64") if byte else x.dtype
    if antialias:
        if out == n:  # a pass that PyTorch skips
            return x
        ratio = _ratio(n, out, scale, align)
        taps = antialias_taps(mode, n, out, ratio, dtype)
    else:
        taps = _taps(mode, n, out, scale, align)
    return sum_bytes(x, axis, as_matrix(taps)) if byte else weighted(x, axis, taps)


@op(namespace=F, method=False, backward="UpsampleNearest2DBackward0")
def interpolate(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:  # fmt: skip
    """Resample the spatial dims of `(N, C, ...)` to `size`, or by `scale_factor`.

    With `antialias` (bilinear, bicubic or lanczos of float32, float64 or uint8) the filter is as
    wide as the scale where that shrinks; a uint8 image is resampled in PIL's integer arithmetic.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear"
            )
    outs, scales = _sizes(input, size, scale_factor, mode, recompute_scale_factor)
    if antialias:
        if mode not in ("bilinear", "bicubic", "lanczos") or input.ndim != 4:
            raise ValueError(
                "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and "
                "requires a 4-D tensor as input"
            )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    known = mode in ("nearest", "nearest-exact", "area") or mode in _RANKS
    if input.ndim not in (3, 4, 5) or not known:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.ndim}D) for the modes: {_MODES} (got {mode})"
        )
    if mode in _RANKS and _RANKS[mode] != input.ndim:
        raise NotImplementedError(
            f"Got {input.ndim}D input, but {mode} mode needs {_RANKS[mode]}D input"
        )
    dims = input.ndim - 2
    if mode == "area":
        return _adaptive_avg(dims, input, outs)
    if min(outs) < 1 or min(input.shape[2:]) < 1:
        letters = "DHW"[-dims:]
        before, after = (
            ", ".join(f"{c}: {n}" for c, n in zip(letters, sizes, strict=True))
            for sizes in (input.shape[2:], outs)
        )
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({before}){' and' if dims == 1 else ''} output ({after})"
        )
    _check_dtype(input.dtype, mode, dims, antialias)
    if not input.size:
        return jnp.zeros(input.shape[:2] + outs, input.dtype)
    x = input if "nearest" in mode else wide(input)
    # The last dim first: it matters where each pass rounds to bytes.
    for axis, out, scale in reversed(list(zip(range(2, input.ndim), outs, scales, strict=True))):
        n = x.shape[axis]
        if "nearest" not in mode:
            x = _mix(x, mode, axis, out, scale, bool(align_corners), antialias)
            continue
        index = _nearest(n, out, scale, mode == "nearest-exact", dims)
        if out % n == 0 and (index == np.arange(out) // (out // n)).all():
            # A broadcast, whose gradient is a sum; a gather's would be a scatter.
            x = jnp.repeat(x, out // n, axis) if out != n else x
        else:
            x = jnp.take(x, index, axis)
    return cast(x, input.dtype)
