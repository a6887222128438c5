"""Reductions of segments of a dim, whose lengths are data."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import is_floating, scalar_name
from ...program.op import Fault, op
from ..shape import dimensions

Array = jax.Array

_NAMES = {
    "sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "max": "max", "amin": "min",
    "min": "min",
}  # fmt: skip
_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
_NEGATIVE = (
    "Expected segment_length >= 0 to be true, but got false.  (Could this error message be "
    "improved?  If so, please report an enhancement request to PyTorch.)"
)
_UNSUMMED = (
    "segment_reduce(): Expected all rows of lengths along axis to sum to "
    "data.size(lengths.dim()-1) when !unsafe."
)


def _faults(
    data: Array, reduce: str, *, lengths: Array | None = None, indices: Array | None = None,
    offsets: Array | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> list[Fault]:  # fmt: skip
    if offsets is not None:
        lengths = jnp.diff(offsets, axis=-1)
        unsafe = True
    if lengths is None:
        return []
    if unsafe:
        return [Fault(lengths < 0, RuntimeError, _NEGATIVE)]
    total = lengths.sum(-1)
    return [
        Fault(lengths < 0, RuntimeError, "lengths contains negative value!"),
        Fault(total != data.shape[axis], RuntimeError, _UNSUMMED),
    ]


def _check_where(data: Array, axis: int, name: str, where: Array) -> None:
    """Refuse lengths or offsets of other dims or another kind than PyTorch's kernels take."""
    if data.ndim < where.ndim:
        raise RuntimeError(
            f"Expected data.dim() >= {name}_value.dim() to be true, but got false.  (Could this "
            "error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if axis != where.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    if where.dtype not in (np.int32, np.int64):
        kind = scalar_name(where.dtype)
        raise NotImplementedError(
            f"\"_segment_reduce_{name}_cpu_kernel1\" not implemented for '{kind}'"
        )


@op(method=False, check=_faults, saves={"data": "*", "lengths": "*", "offsets": "*"})
def segment_reduce(
    data: Array, reduce: str, *, lengths: Array | None = None, indices: Array | None = None,
    offsets: Array | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Array:  # fmt: skip
    """Reduce consecutive segments of dim `axis`, each of its own length.

    Args:
      data: `(*batch, n, ...)`, where `axis` is the number of dims in `batch`.
      reduce: "sum", "prod", "mean", "max" or "min".
      lengths: `(*batch, segments)`.
      offsets: `(*batch, segments + 1)`: where segments begin, and where the last one ends.
      initial: what each segment's reduction starts from.

    Returns:
      `(*batch, segments, ...)`. Equal maxima share the gradient.
    """
    if reduce not in _NAMES:
        raise RuntimeError(
            "reduce argument must be either sum, prod, mean, amax or amin, got " + reduce
        )
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    axis = dimensions.wrap_dim(axis, data.ndim)
    if offsets is not None:
        _check_where(data, axis, "offsets", offsets)
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    elif lengths is not None:
        _check_where(data, axis, "lengths", lengths)
        ends = jnp.cumsum(lengths, -1)
        starts = ends - lengths
    else:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not is_floating(data.dtype):
        kind = scalar_name(data.dtype)
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{kind}'")
    place = jnp.arange(data.shape[axis])
    inside = (place >= starts[..., None]) & (place < ends[..., None])  # (*batch, segments, n)
    how = _NAMES[reduce]
    neutral = jnp.asarray(_NEUTRAL[how], data.dtype)
    inside = inside.reshape(inside.shape + (1,) * (data.ndim - axis - 1))
    values = jnp.where(inside, jnp.expand_dims(data, axis), neutral)
    return _reduced(how, values, inside, axis + 1, initial, neutral)


def _reduced(
    how: str, values: Array, inside: Array, along: int, initial: Any, neutral: Array
) -> Array:
    """Reduce what each segment has of the data; elsewhere `values` is neutral."""
    start = neutral if initial is None else jnp.asarray(initial, values.dtype)
    if how == "prod":
        return values.prod(along) * start
    if how == "sum":
        return values.sum(along) + start
    if how == "mean":
        count = inside.sum(along).astype(values.dtype)
        none = jnp.asarray(np.nan if initial is None else initial, values.dtype)
        some = jnp.where(count > 0, count, jnp.ones((), values.dtype))
        return jnp.where(count > 0, (values.sum(along) + start) / some, none)
    fold, pick = (jnp.max, jnp.maximum) if how == "max" else (jnp.min, jnp.minimum)
    fixed = jax.lax.stop_gradient(values)
    best = pick(fold(fixed, along), start)
    hit = inside & ((fixed == jnp.expand_dims(best, along)) | jnp.isnan(fixed))
    count = hit.sum(along).astype(values.dtype)
    total = jnp.where(hit, values, jnp.zeros((), values.dtype)).sum(along)
    return jnp.where(count > 0, total / jnp.where(count > 0, count, 1), best)


@op(differentiable=False)
def hash_tensor(input: Array, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Array:
    """Compute the exclusive or of the elements' bits, uint64: as 64-bit integers or doubles.

    Args:
      dim: what to reduce, all if empty.
      mode: 0, the only one there is.
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if not dims and input.size == 0:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    if input.dtype.kind == "c":
        kind = scalar_name(input.dtype)
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{kind}'")
    axes = dimensions.wrap_dims(dims, input.ndim) if dims else tuple(range(input.ndim))
    for d in axes if input.ndim and input.size == 0 else ():
        if input.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    axes = axes if input.ndim else ()
    wide = np.dtype("float64") if is_floating(input.dtype) else np.dtype("int64")
    bits = jax.lax.bitcast_convert_type(input.astype(wide), np.uint64)
    out = jax.lax.reduce(bits, np.uint64(0), jax.lax.bitwise_xor, axes)
    if keepdim:
        out = jnp.expand_dims(out, axes)
    return out
