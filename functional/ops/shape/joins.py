"""Ops that join a list of tensors into one, or broadcast them together."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast, default_float, promote_types
from ...program.op import Decorator, ops_with
from ..nn.checks import repeated
from . import dimensions

op: Decorator = ops_with(moves=True)

Array = jax.Array


def _same_dtype(tensors: Sequence[Array]) -> list[Array]:
    """Cast to the common dtype; here 0-dim tensors count as much as others."""
    dtype = np.dtype(tensors[0].dtype)
    for x in tensors[1:]:
        dtype = promote_types(dtype, x.dtype)
    return [cast(x, dtype) for x in tensors]


def _cat(tensors: Sequence[Array], dim: int) -> Array:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for at, x in enumerate(tensors):
        if not x.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {at}) cannot be concatenated")
    tensors = _same_dtype(tensors)
    # Empty vectors join with anything, an old habit of PyTorch.
    kept = [(at, x) for at, x in enumerate(tensors) if x.shape != (0,)]
    if not kept:  # whatever the dim
        return tensors[0]
    first = kept[0][1]
    dim = dimensions.wrap_dim(dim, first.ndim)
    for at, x in kept:
        if x.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}"
            )
        for axis, (n, m) in enumerate(zip(first.shape, x.shape, strict=True)):
            if axis != dim and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but "
                    f"got size {m} for tensor number {at} in the list."
                )
    return lax.concatenate([x for _, x in kept], dim)


@op(method=False, aliases=("concat", "concatenate"))
def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Join tensors along a dim that they have."""
    return _cat(tensors, dim)


@op(method=False)
def stack(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Join tensors along a new dim."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    dim = dimensions.wrap_dim(dim, len(first) + 1)
    for at, x in enumerate(tensors):
        if x.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x.shape)} at entry {at}"
            )
    return jnp.stack(_same_dtype(tensors), dim)  # one primitive, which is traced once


def _need_tensors(name: str, tensors: Sequence[Array]) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@op(method=False, backward="CatBackward0")
def hstack(tensors: Sequence[Array]) -> Array:
    """Join tensors side by side: along dim 1, vectors along dim 0."""
    _need_tensors("hstack", tensors)
    whole = [x.reshape(1) if not x.ndim else x for x in tensors]
    return _cat(whole, 0 if whole[0].ndim == 1 else 1)


@op(method=False, backward="CatBackward0", aliases=("row_stack",))
def vstack(tensors: Sequence[Array]) -> Array:
    """Join tensors on top of each other; vectors are rows."""
    _need_tensors("vstack", tensors)
    return _cat([x.reshape(1, -1) if x.ndim < 2 else x for x in tensors], 0)


@op(method=False, backward="CatBackward0")
def dstack(tensors: Sequence[Array]) -> Array:
    """Join tensors along dim 2."""
    _need_tensors("dstack", tensors)
    rows = [x.reshape(1, -1) if x.ndim < 2 else x for x in tensors]
    return _cat([x[..., None] if x.ndim == 2 else x for x in rows], 2)


@op(method=False, backward="CatBackward0")
def column_stack(tensors: Sequence[Array]) -> Array:
    """Join tensors along dim 1; vectors are columns."""
    _need_tensors("column_stack", tensors)
    return _cat([x.reshape(-1, 1) if x.ndim < 2 else x for x in tensors], 1)


@op(method=False)
def block_diag(tensors: Sequence[Array]) -> Array:
    """Put matrices on the diagonal of a matrix of zeros; vectors are rows."""
    for at, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {at} has {x.ndim} dimensions"
            )
    if not tensors:
        return jnp.zeros((1, 0), default_float())
    blocks = [x.reshape(1, -1) if x.ndim < 2 else x for x in _same_dtype(tensors)]
    shape = (sum(x.shape[0] for x in blocks), sum(x.shape[1] for x in blocks))
    out, row, column = jnp.zeros(shape, blocks[0].dtype), 0, 0
    for x in blocks:
        out = lax.dynamic_update_slice(out, x, (row, column))
        row, column = row + x.shape[0], column + x.shape[1]
    return out


@op(method=False, backward="ExpandBackward0")
def broadcast_tensors(tensors: Sequence[Array]) -> tuple[Array, ...]:
    """Expand tensors to their common shape."""
    shape: dimensions.Shape = ()
    for x in tensors:
        shape = dimensions.broadcast_shapes(shape, x.shape)
    return tuple(repeated(x, tuple(shape)) for x in tensors)


@op(method=False, backward="ExpandBackward0")
def meshgrid(tensors: Sequence[Array], indexing: str = "ij") -> tuple[Array, ...]:
    """Expand vectors to coordinates on their grid."""
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in tensors:
        if x.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor of "
                f"shape {list(x.shape)}"
            )
        if x.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    return tuple(jnp.meshgrid(*(x.reshape(-1) for x in tensors), indexing=indexing))
