"""Ops that read along a dim, at positions that may differ for each element."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import scalar_name
from ...program.op import Fault, op
from ..linalg.checks import size
from ..shape import dimensions
from .indexing import IN_BOUNDS, INT32_INT64, outside

Array = jax.Array


def _check_gather(input: Array, dim: int, index: Array, sparse_grad: bool = False) -> list[Fault]:
    axis = dimensions.wrap_dim(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 1
    message = f"index {{value}} is out of bounds for dimension {axis} with size {size}"
    return [outside(index, size, message, RuntimeError)]


def gather_along(input: Array, dim: int, index: Array) -> Array:
    """Gather along a dim without checks."""
    if not input.ndim or not index.ndim:
        flat = input.reshape(-1)
        return flat.at[index].get(mode=IN_BOUNDS)
    limits = [n if axis == dim else index.shape[axis] for axis, n in enumerate(input.shape)]
    return jnp.take_along_axis(
        lax.slice(input, (0,) * input.ndim, limits), index, dim, mode=IN_BOUNDS
    )


@op(saves={"self": "self", "index": "self"}, check=_check_gather)
def gather(input: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    """Take one element along a dim for each element of `index`."""
    dim = dimensions.wrap_dim(dim, input.ndim)
    if index.dtype.name not in INT32_INT64 and index.size:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for axis in range(input.ndim):
        if axis != dim and index.shape[axis] > input.shape[axis]:
            raise RuntimeError(
                f"Size does not match at dimension {axis} expected index {list(index.shape)} to be "
                f"no larger than self {list(input.shape)} apart from dimension {dim}"
            )
    return gather_along(input, dim, index)


def _check_take_along_dim(input: Array, indices: Array, dim: int | None = None) -> list[Fault]:
    if dim is not None:
        return []
    message = f"index {{value}} is out of bounds for dimension 0 with size {input.size}"
    return [outside(indices, input.size, message, RuntimeError)]


@op(
    backward="GatherBackward0", saves={"self": "self", "index": "self"},
    check=_check_take_along_dim,
)  # fmt: skip
def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """Take elements along a dim after broadcasting, or of the flat tensor.

    Along a dim, indices wrap.
    """
    if dim is None:
        if not indices.size:
            return jnp.zeros((0,), input.dtype)
        if indices.dtype.name not in INT32_INT64:
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        return lax.reshape(input, (input.size,)).at[indices.reshape(-1)].get(mode=IN_BOUNDS)
    if indices.ndim != input.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if indices.dtype.name != "int64":
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            + scalar_name(indices.dtype)
        )
    dim = dimensions.wrap_dim(dim, input.ndim)

    def without(shape: dimensions.Shape, n: int) -> dimensions.Shape:
        return (*shape[:dim], n, *shape[dim + 1 :])

    wanted = without(input.shape, size(indices, dim))
    shape = dimensions.broadcast_shapes(wanted, indices.shape)
    whole = jnp.broadcast_to(input, without(shape, input.shape[dim]))
    wrapped = jnp.remainder(indices, input.shape[dim] or 1)
    return jnp.take_along_axis(whole, jnp.broadcast_to(wrapped, shape), dim, mode=IN_BOUNDS)
