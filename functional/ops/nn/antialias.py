"""Weights of resampling with a filter as wide as the scale, and its sums in 8-bit integers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .taps import Taps, make

Array = jax.Array

_TAPS = {"bilinear": 2, "bicubic": 4, "lanczos": 6}


def _filter(mode: str, x: np.ndarray) -> np.ndarray:
    """Evaluate the kernel at `x`: triangle, Keys' cubic with a = -0.5 (as PIL's), or Lanczos."""
    x = np.abs(x)
    one = x.dtype.type(1)
    if mode == "bilinear":
        return np.where(x < 1, one - x, 0)
    if mode == "lanczos":
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    a = x.dtype.type(-0.5)
    near = ((a + 2) * x - (a + 3)) * x * x + one
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def antialias_taps(mode: str, size: int, out: int, ratio: float, dtype: np.dtype) -> Taps:
    """Return which pixels each of `out` places reads, and with which weights.

    They are computed in `dtype`, as PyTorch does, so that the first and last taps are the same.
    """
    kind = dtype.type
    scale = kind(ratio)
    support = kind(_TAPS[mode] / 2) * max(scale, kind(1))
    shrink = kind(1) / scale if scale >= 1 else kind(1)
    taps = int(np.ceil(support)) * 2 + 1
    center = scale * (np.arange(out, dtype=dtype) + kind(0.5))
    first = np.maximum((center - support + kind(0.5)).astype(np.int64), 0)
    last = np.minimum((center + support + kind(0.5)).astype(np.int64), size)
    at = np.arange(taps)
    offset = (at + first[:, None]).astype(dtype) - center[:, None] + kind(0.5)
    inside = at < np.clip(last - first, 0, taps)[:, None]
    weights = np.where(inside, _filter(mode, (offset * shrink).astype(dtype)), 0).astype(dtype)
    total = weights.sum(1, keepdims=True)
    weights = np.divide(weights, total, out=weights, where=total != 0)
    return make(size, first[:, None] + at, weights, inside)


def sum_bytes(x: Array, axis: int, matrix: np.ndarray) -> Array:
    """Map `axis` of the uint8 `x` by `matrix`, in PIL's fixed-point arithmetic.

    The weights are int16 with as many fractional bits as the largest of them allows.
    """
    top = float(np.abs(matrix).max())
    bits = 0
    while bits < 22 and int(0.5 + top * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    fixed = np.trunc(matrix * (1 << bits) + np.where(matrix < 0, -0.5, 0.5)).astype(np.int32)
    summed = jnp.tensordot(x.astype(np.int32), jnp.asarray(fixed), ((axis,), (1,)))
    summed = (summed + (1 << (bits - 1))) >> bits
    return jnp.moveaxis(jnp.clip(summed, 0, 255).astype(np.uint8), -1, axis)
