"""Convolution as it suits the device: by XLA, or on CPUs by products where that is faster.

XLA:CPU's convolution is slow where the maps are small (2x2 maps of 512 channels: 46 times slower
than one matrix product) and where each channel is filtered alone (10 to 30 times slower than
shifted products). Measured with gradients on 2 cores in float32; see `benchmarks/results.md`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import is_floating
from ...program.numerics import SINGLE, numerics
from ...program.options import lowerings
from ...program.platform import platform
from .checks import wide

Array = jax.Array

SMALL = 16  # positions of the result up to which columns and a matrix product are faster
TAPS = 49  # elements of a kernel up to which shifted products are


def convolve(
    x: Array, weight: Array, stride: Sequence[int], pads: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int], dilation: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    """Convolve `(N, C, ...)` with `(O, C / groups, ...)`; spatial dims as `lax` has them."""
    on_cpu = lowerings()["convolution"] == "auto" and platform() == "cpu"
    kernel = weight.shape[2:]
    out = [
        ((n - 1) * spread + 1 + sum(pad) - d * (k - 1) - 1) // s + 1
        for n, spread, pad, d, k, s in zip(
            x.shape[2:], lhs_dilation, pads, dilation, kernel, stride, strict=True
        )
    ]
    if x.dtype.kind in "biu" and x.size > 0 < weight.size:  # cuDNN convolves no integers
        spread = [(*pad, d - 1) for pad, d in zip(pads, lhs_dilation, strict=True)]
        x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *spread])
        return _by_columns(x, weight, stride, ((0, 0),) * len(stride), dilation, out, groups)
    if on_cpu and is_floating(x.dtype) and x.dtype.itemsize == 2:  # XLA:CPU sums some in halves
        y = convolve(wide(x), wide(weight), stride, pads, lhs_dilation, dilation, groups)
        return y.astype(x.dtype)
    suits = (
        on_cpu
        and x.dtype in (np.dtype("float32"), np.dtype("float64"))
        and set(lhs_dilation) == {1}
        and x.size > 0 < weight.size
    )
    taps = math.prod(kernel)
    if suits and groups == x.shape[1] > 1 and taps <= TAPS:
        return _channel_by_channel(x, weight, stride, pads, dilation, out)
    if suits and groups == 1 and (taps == 1 or _is_small(out)):
        return _by_columns(x, weight, stride, pads, dilation, out)
    spatial = "DHW"[-len(stride) :]
    names = ("NC" + spatial, "OI" + spatial, "NC" + spatial)
    return jax.lax.conv_general_dilated(
        x, weight, stride, pads, lhs_dilation=lhs_dilation, rhs_dilation=dilation,
        dimension_numbers=names, feature_group_count=groups,
        precision=numerics().conv if x.dtype in SINGLE else None,
    )  # fmt: skip


def _is_small(out: Sequence[int]) -> bool:
    """Return True if the result has few positions; symbolic lengths count as many."""
    return all(type(n) is int for n in out) and math.prod(out) <= SMALL


def _taps(
    x: Array, kernel: Sequence[int], stride: Sequence[int], pads: Sequence[tuple[int, int]],
    dilation: Sequence[int], out: Sequence[int],
) -> list[Array]:  # fmt: skip
    """Return what each element of the kernel is multiplied with: `(N, C, *out)`."""
    if any(map(any, pads)):
        x = jnp.pad(x, ((0, 0), (0, 0), *pads))
    found = []
    for place in itertools.product(*map(range, kernel)):
        begin = [i * d for i, d in zip(place, dilation, strict=True)]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, out, stride, strict=True)]
        found.append(jax.lax.slice(x, (0, 0, *begin), (*x.shape[:2], *end), (1, 1, *stride)))
    return found


def _by_columns(
    x: Array, weight: Array, stride: Sequence[int], pads: Sequence[tuple[int, int]],
    dilation: Sequence[int], out: Sequence[int], groups: int = 1,
) -> Array:  # fmt: skip
    """Convolve by a matrix product: all that each result is made of is a column (im2col)."""
    n, kernel = x.shape[0], weight.shape[2:]
    columns = jnp.stack(_taps(x, kernel, stride, pads, dilation, out), 2)
    if groups == 1:
        columns = columns.reshape(n, -1, math.prod(out))  # (N, C * taps, positions)
        y = jnp.einsum("ok,nkp->nop", weight.reshape(weight.shape[0], -1), columns)
    else:
        columns = columns.reshape(n, groups, -1, math.prod(out))
        by_group = weight.reshape(groups, weight.shape[0] // groups, -1)
        y = jnp.einsum("gok,ngkp->ngop", by_group, columns)
    return y.reshape(n, weight.shape[0], *out)


def _channel_by_channel(
    x: Array, weight: Array, stride: Sequence[int], pads: Sequence[tuple[int, int]],
    dilation: Sequence[int], out: Sequence[int],
) -> Array:  # fmt: skip
    """Convolve each channel with its own kernels: a sum of shifted products, one loop."""
    n, channels = x.shape[:2]
    spread = (1,) * len(out)
    w = weight.reshape(channels, -1, math.prod(weight.shape[2:]))  # (C, results a channel, taps)
    total: Array | None = None
    for k, tap in enumerate(_taps(x, weight.shape[2:], stride, pads, dilation, out)):
        term = tap[:, :, None] * w[:, :, k].reshape(channels, -1, *spread)
        total = term if total is None else total + term
    assert total is not None
    return total.reshape(n, weight.shape[0], *out)
