"""Inner, outer, cross and Kronecker products, and chains of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import cpp_name, promote
from ...program.op import op
from ..shape import dimensions
from . import matmul
from .checks import need_float, need_same_dtype, size
from .linalg import LINALG

Array = jax.Array


@op(backward="ViewBackward0", saves={"self": "other", "other": "self"})
def inner(input: Array, other: Array) -> Array:
    """Compute inner products over the last dims of both."""
    if input.dtype != other.dtype and input.ndim and other.ndim:
        raise RuntimeError("both inputs should have same dtype")
    if not input.ndim or not other.ndim:
        left, right = promote(input, other)
        return left * right
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return jnp.inner(input, other)


@op(backward="MulBackward0", saves={"self": "vec2", "vec2": "self"}, aliases=("ger",))
def outer(input: Array, vec2: Array) -> Array:
    """Compute all products of the elements of two vectors."""
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    left, right = promote(input, vec2)
    return left[:, None] * right


@op(backward="UnsafeViewBackward0", saves={"self": "other", "other": "self"})
def kron(input: Array, other: Array) -> Array:
    """Compute the Kronecker product."""
    a, b = promote(input, other)
    if a.dtype == bool:  # "and", which JAX does not call a product
        return jnp.kron(a.astype("int8"), b.astype("int8")).astype(bool)
    return jnp.kron(a, b)


def _cross(input: Array, other: Array, dim: int) -> Array:
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    lengths = size(input, dim), size(other, dim)
    if lengths != (3, 3):
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {lengths[0]} and "
            f"{lengths[1]}"
        )
    axis = dimensions.wrap_dim(dim, input.ndim)
    dimensions.broadcast_shapes(input.shape, other.shape)
    matmul.need_kernel_dtypes("cross", input, other)
    # Spelled out: a gradient of `jnp.cross` seems to read both operands.
    x, y = ([lax.index_in_dim(t, k, axis) for k in range(3)] for t in (input, other))
    pairs = ((1, 2), (2, 0), (0, 1))
    return jnp.concatenate([x[j] * y[k] - x[k] * y[j] for j, k in pairs], axis)


_CROSS = {"backward": "LinalgCrossBackward0", "saves": {"self": "other", "other": "self"}}


@op(**_CROSS)
def cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """Cross product over `dim`, by default the first dim of length 3."""
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = input.shape.index(3)
    return _cross(input, other, dim)


@op(name="cross", **LINALG, **_CROSS)
def linalg_cross(input: Array, other: Array, dim: int = -1) -> Array:
    """Cross product over `dim`."""
    return _cross(input, other, dim)


@op(name="vecdot", **LINALG, backward="SumBackward1",
    saves={"self": "y", "y": "self"})  # fmt: skip
def vecdot(x: Array, y: Array, dim: int = -1) -> Array:
    """Compute inner products over a dim, the first argument conjugated."""
    need_float("linalg.vecdot", x)
    need_same_dtype("linalg.vecdot", x=x, y=y)
    if x.ndim == y.ndim == 1:
        return matmul.vdot(x, y)
    shape = dimensions.broadcast_shapes(x.shape, y.shape)
    left = lax.conj(x) if x.dtype.kind == "c" else x
    axis = dimensions.wrap_dim(dim, len(shape)) if shape else ()
    return jnp.sum(left * y, axis=axis, dtype=x.dtype)


@op(name="multi_dot", **LINALG, backward="MmBackward0",
    saves={"tensors": "*"})  # fmt: skip
def multi_dot(tensors: Sequence[Array]) -> Array:
    """Multiply a chain of matrices, in the cheapest order."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    last = len(tensors) - 1
    for i, x in enumerate(tensors):
        if i in (0, last):
            if x.ndim not in (1, 2):
                which = "last" if i else "first"
                raise RuntimeError(
                    f"multi_dot(): the {which} tensor must be 1D or 2D but got {x.ndim}D"
                )
        elif x.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
    for i, x in enumerate(tensors):
        if x.dtype != tensors[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{cpp_name(tensors[0].dtype)} and tensor {i} {cpp_name(x.dtype)}"
            )
    shapes = [x.shape for x in tensors]
    for i, (a, b) in enumerate(zip(shapes, shapes[1:], strict=False)):
        if a[-1] != b[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a)} and {list(b)} cannot "
                "be multiplied"
            )
    return jnp.linalg.multi_dot(tensors)
