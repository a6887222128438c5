"""Searching sorted values, quantiles, distances of all pairs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, cpp_name, is_complex, is_floating, promote, real_of, scalar_name
from ...program.op import Fault, op
from ..elementwise.arithmetic import no_bool_difference
from ..elementwise.operands import unsupported
from ..linalg.checks import computes, need_kernel
from ..linalg.matmul import need_kernel_dtypes
from ..nn.checks import wrap_dim
from ..shape import dimensions
from .norms import _vector_norm, vector_norm

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


def _safe_root(total: Array, p: float) -> Array:
    """Compute the p-th root with gradient 0 at 0."""
    zero = total == 0  # not NaN, which stays
    base = jnp.where(zero, jnp.ones((), total.dtype), total)
    return jnp.where(zero, jnp.zeros((), total.dtype), base ** (1 / p))


def _distance(d: Array, p: float) -> Array:
    size = jnp.abs(d) if is_complex(d.dtype) else d * jnp.sign(d)
    d = size
    if p == 0:
        differs = jnp.where(jnp.isnan(size), size, (size != 0).astype(d.dtype))
        return jax.lax.stop_gradient(differs.sum(-1))
    if p == 1:
        return size.sum(-1)
    if np.isinf(p):  # each of those that are largest gets the whole gradient
        largest = jax.lax.stop_gradient(size.max(-1))
        ties = (size == largest[..., None]) & jnp.isfinite(size)
        return largest + jnp.where(ties, size - jax.lax.stop_gradient(size), 0).sum(-1)
    zero = size == 0  # not NaN, which stays
    power = jnp.where(zero, jnp.ones((), d.dtype), size) ** p
    return _safe_root(jnp.where(zero, jnp.zeros((), d.dtype), power).sum(-1), p)


# Whether `compute_mode` has distances of a matrix product; None: where there are many rows.
_PRODUCT = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}
_MANY_ROWS = 25


@op(method=False, backward="CdistBackward0", saves={"x1": "*", "x2": "*", "result": "*"})
def cdist(
    x1: Array, x2: Array, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Array:
    """Compute the p-norm distances of all pairs of rows."""
    if compute_mode not in _PRODUCT:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if not is_floating(x.dtype):
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: "
                               f"{scalar_name(x.dtype)}")  # fmt: skip
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    dimensions.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    # By a matrix product where there are many rows, which computes in halves too.
    product = _PRODUCT[compute_mode]
    if x1.dtype != x2.dtype or not computes(x1.dtype):
        if product is None:
            product = max(x1.shape[-2], x2.shape[-2]) > _MANY_ROWS
        if x1.size and x2.size and (p != 2 or not product):
            need_kernel("cdist", x1)
            need_kernel_dtypes("cdist", x1, x2)
    if x1.dtype != x2.dtype and x1.size and x2.size:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{cpp_name(x1.dtype)} != {cpp_name(x2.dtype)}"
        )
    a, b = x1, cast(x2, x1.dtype)
    d = a[..., :, None, :] - b[..., None, :, :]
    if not d.shape[-1]:
        return jnp.zeros(d.shape[:-1], d.dtype)
    if np.isinf(p):  # PyTorch's maximum here leaves NaN out
        d = jnp.where(jnp.isnan(d), 0, d)
    return _distance(d, p)


@op(saves={"self": "*", "other": "*", "result": "*"}, backward="DistBackward0")
def dist(input: Array, other: Array, p: float = 2) -> Array:
    """Compute the p-norm of `input - other`."""
    no_bool_difference(input, other)
    a, b = promote(input, other)
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{scalar_name(a.dtype)} instead."
        )
    dimensions.broadcast_shapes(a.shape, b.shape)
    d = (a - b).reshape(-1)
    return _vector_norm(d, float(p), (0,), False) if d.size else jnp.zeros((), real_of(d.dtype))


@op(method=False, backward="PdistBackward0", saves={"self": "*", "result": "*"})
def pdist(input: Array, p: float = 2.0) -> Array:
    """Compute the p-norm distances of all pairs of different rows."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not is_floating(input.dtype):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = np.triu_indices(input.shape[0], 1)
    d = input[i] - input[j]
    if d.size and d.dtype.itemsize == 2:
        raise NotImplementedError(f"\"pdist\" not implemented for '{scalar_name(d.dtype)}'")
    return _distance(d, float(p)) if d.size else jnp.zeros(d.shape[:1], d.dtype)


@op(backward="RenormBackward0", inplace=True, saves={"self": "*"})
def renorm(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Scale slices along `dim` whose p-norm exceeds `maxnorm` down to it."""
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(input.dtype)}"
        )
    dim = wrap_dim(dim, input.ndim)
    axes = tuple(i for i in range(input.ndim) if i != dim)
    norms = vector_norm(input, p, axes, True)
    factor = jnp.where(norms > maxnorm, maxnorm / (norms + 1e-7), jnp.ones((), norms.dtype))
    return input * cast(factor, input.dtype)
