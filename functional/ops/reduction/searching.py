"""Searching sorted values, quantiles, distances of all pairs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import promote, scalar_name
from ...program.op import Fault, op
from ..elementwise.operands import unsupported
from ..nn.checks import wrap_dim

Array = jax.Array


def _sorter_faults(
    sorted_sequence: Array, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Array | None = None,
) -> list[Fault]:  # fmt: skip
    if sorter is None or sorter.shape != sorted_sequence.shape:
        return []
    bad = (sorter < 0) | (sorter >= sorted_sequence.shape[-1])
    return [Fault(bad, RuntimeError, "torch.searchsorted(): sorter index out of range")]


@op(differentiable=False, method=False, check=_sorter_faults)
def searchsorted(
    sorted_sequence: Array, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Array | None = None,
) -> Array:  # fmt: skip
    """Find where to insert `input` so that the last dim of `sorted_sequence` stays sorted."""
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    boundaries, values = promote(sorted_sequence, input)
    if sorted_sequence.ndim == 0 and values.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    if sorted_sequence.ndim != 1 and values.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
            f"dimension is 1, but we got boundaries tensor dim({sorted_sequence.ndim}) and input "
            f"value's dim({values.ndim}) numel({values.size})"
        )
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"boundary tensor {list(sorted_sequence.shape)}and got sorter tensor "
                f"{list(sorter.shape)}"
            )
        if sorter.dtype != np.dtype("int64"):
            raise RuntimeError(
                "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                f"{scalar_name(sorter.dtype)}"
            )
        boundaries = jnp.take_along_axis(boundaries, sorter, -1)
    if sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(sorted_sequence.shape)} and input value tensor "
            f"{list(values.shape)}"
        )
    find = partial(_find, right=right or side == "right")
    if boundaries.dtype.kind in "bc" and values.size:
        raise unsupported("searchsorted_out_cpu", boundaries.dtype)
    if boundaries.ndim == 1:
        found = find(boundaries, values)
    else:
        *batch, length = boundaries.shape
        rows = boundaries.reshape(math.prod(batch), length)
        found = jax.vmap(find)(rows, values.reshape(rows.shape[0], values.shape[-1]))
    return found.reshape(values.shape).astype(np.int32 if out_int32 else np.int64)


def _find(row: Array, x: Array, right: bool) -> Array:
    """Search as PyTorch's binary search: what does not compare, as NaN, sends it to the right."""
    low = jnp.zeros(x.shape, np.dtype("int32"))
    high = jnp.full(x.shape, row.size, np.dtype("int32"))
    for _ in range(row.size.bit_length()):
        middle = low + (high - low) // 2
        at = row[jnp.minimum(middle, row.size - 1)]
        up = ~(at > x if right else at >= x) & (low < high)
        low, high = jnp.where(up, middle + 1, low), jnp.where(up | (low >= high), high, middle)
    return low


@op(differentiable=False, method=False)
def bucketize(
    input: Any, boundaries: Array, *, out_int32: bool = False, right: bool = False
) -> Array:
    """Find the bucket of each element among sorted boundaries."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _quantile(
    input: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool
) -> Array:
    name = "quantile()"  # also of `nanquantile`, in PyTorch
    if not hasattr(q, "dtype") and not 0 <= q <= 1:
        raise RuntimeError(f"{name} q must be in the range [0, 1] but got {q:g}")
    if input.size == 0:
        raise RuntimeError(f"{name} input tensor must be non-empty")
    if input.dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise RuntimeError(f"{name} input tensor must be either float or double dtype")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name} interpolation must be one of linear, lower, higher, midpoint or nearest, but "
            f"got {interpolation}"
        )
    if not hasattr(q, "dtype"):
        q = jnp.asarray(q, input.dtype)
    if q.ndim > 1:
        raise RuntimeError(f"{name} q must be a scalar or 1D tensor")
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name} q tensor must be same dtype as the input tensor")
    shape = input.shape
    if dim is None or not shape:
        dim = dim if dim is None else wrap_dim(dim, 0)
        x = input.reshape(-1)
    else:
        x = jnp.moveaxis(input, wrap_dim(dim, input.ndim), -1)
    x = jnp.sort(x, axis=-1)
    size = x.shape[-1]
    nans = jnp.isnan(x)
    last = (size - nans.sum(-1, keepdims=True) - 1) if skip_nan else size - 1
    rank = jnp.clip(q * jnp.maximum(last, 0)[..., None, :] if skip_nan else q * last, 0)
    if skip_nan:
        rank = rank[..., 0, :]
    rank = jnp.broadcast_to(rank, (*x.shape[:-1], q.size)).astype(x.dtype)
    if interpolation == "lower":
        rank = jnp.floor(rank)
    elif interpolation == "higher":
        rank = jnp.ceil(rank)
    elif interpolation == "nearest":
        rank = jnp.round(rank)
    below = jnp.floor(rank)
    weight = jnp.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
    low = jnp.take_along_axis(x, below.astype(np.int64), -1)
    out = low
    if interpolation in ("linear", "midpoint"):
        high = jnp.take_along_axis(x, jnp.ceil(rank).astype(np.int64), -1)
        out = low + weight * (high - low)
    if not skip_nan:
        out = jnp.where(nans.any(-1, keepdims=True), jnp.full((), np.nan, x.dtype), out)
    if keepdim:
        kept = (
            (1,) * len(shape)
            if dim is None
            else tuple(1 if i == wrap_dim(dim, len(shape)) else n for i, n in enumerate(shape))
        )
    else:
        kept = x.shape[:-1]
    out = jnp.moveaxis(out, -1, 0)
    return out.reshape(kept) if q.ndim == 0 else out.reshape((q.size, *kept))


def _quantile_faults(input: Array, q: Any, *args: Any, **kwargs: Any) -> list[Fault]:
    """Return the faults in the data of `q`; both kinds of quantiles are `quantile()` there."""
    if not hasattr(q, "dtype"):
        return []
    text = "quantile() q values must be in the range [0, 1]"
    return [Fault(~((q >= 0) & (q <= 1)), RuntimeError, text)]


@op(backward="SqueezeBackward4", check=_quantile_faults)
def quantile(
    input: Array, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Array:  # fmt: skip
    """Compute the q-th quantiles of all elements or along `dim`; NaN wins."""
    return _quantile(input, q, dim, keepdim, interpolation, False)


@op(backward="SqueezeBackward4", check=_quantile_faults)
def nanquantile(
    input: Array, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Array:  # fmt: skip
    """Compute the q-th quantiles of what is not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True)
