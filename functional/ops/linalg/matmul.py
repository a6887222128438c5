"""Matrix products and their scaled sums."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import cpp_name, scalar_name
from ...program.op import op
from ..shape import dimensions

Array = jax.Array


def need_kernel_dtypes(kernel: str, x: Array, y: Array, terms: int = 1) -> None:
    """Require two operands of one dtype, not bool: the first one's chooses the kernel."""
    _not_for_bool(kernel, x, terms)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(y.dtype)}"
        )


def _not_for_bool(kernel: str, x: Array, terms: int = 1) -> None:
    """Refuse bools, but where there is nothing to multiply."""
    if x.dtype.name == "bool" and terms:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


# Checks by rank ----------------------------------------------------------------------------------


def _check_mm(rows: int, inner: int, other: Array, input: Array) -> None:
    if inner != other.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and "
            f"{other.shape[0]}x{other.shape[1]})"
        )
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {cpp_name(input.dtype)} != "
            f"{cpp_name(other.dtype)}"
        )
    _not_for_bool("addmm_impl_cpu_", input, rows * inner * other.shape[1])


def _check_mv(rows: int, inner: int, vec: Array, mat: Array, input: Array | None = None) -> None:
    """Check `mat @ vec`, which is added to `input`; without it, to what has the vector's dtype."""
    out = rows if input is None else input.size
    input = vec if input is None else input
    if inner != vec.shape[0] or out not in (1, rows):
        raise RuntimeError(
            f"size mismatch, got input ({out}), mat ({rows}x{inner}), vec ({vec.shape[0]})"
        )
    if not input.dtype == mat.dtype == vec.dtype:
        names = [scalar_name(x.dtype) for x in (input, mat, vec)]
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{names[0]}, {names[1]}, and {names[2]}"
        )
    _not_for_bool("addmv_impl_cpu", mat, rows * inner)


def _check_dot(input: Array, tensor: Array) -> None:
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    if input.dtype != tensor.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{scalar_name(input.dtype)} and {scalar_name(tensor.dtype)}"
        )
    if input.size != tensor.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input.size}] and src [{tensor.size}] to "
            f"have the same number of elements, but got {input.size} and {tensor.size} elements "
            "respectively"
        )
    _not_for_bool("dot", input)


def _check_bmm(batch1: Array, batch2: Array, batches: int, other_batches: int) -> None:
    if (batches, batch1.shape[-1]) != (other_batches, batch2.shape[-2]):
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{batches}, {batch1.shape[-1]}] but got: [{other_batches}, {batch2.shape[-2]}]."
        )
    need_kernel_dtypes("bmm", batch1, batch2, batch1.size * batch2.shape[-1])


def _need_3d(batch1: Array, batch2: Array) -> None:
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")


# Products ----------------------------------------------------------------------------------------


@op(backward="MmBackward0", saves={"self": "other", "other": "self"})
def matmul(input: Array, other: Array) -> Array:
    """Multiply matrices, vectors and batches of them; batch dims broadcast."""
    left, right = input.ndim, other.ndim
    if not left or not right:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D"
        )
    if left == right == 1:
        _check_dot(input, other)
    elif right == 1:
        _check_mv(math.prod(input.shape[:-1]), input.shape[-1], other, input)
    elif right == 2:
        _check_mm(math.prod(input.shape[:-1]), input.shape[-1], other, input)
    elif left == 1 and input.dtype == other.dtype:
        # PyTorch folds the batch into the rows of the transposed matrices.
        _check_mv(math.prod(other.shape) // max(other.shape[-2], 1), other.shape[-2], input, other)
    else:
        batch = math.prod(dimensions.broadcast_shapes(input.shape[:-2], other.shape[:-2]))
        _check_bmm(input, other, batch, batch)
    return jnp.matmul(input, other)


@op(saves={"self": "mat2", "mat2": "self"})
def mm(input: Array, mat2: Array) -> Array:
    """Multiply two matrices."""
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    _check_mm(input.shape[0], input.shape[1], mat2, input)
    return lax.dot(input, mat2)


@op(saves={"self": "mat2", "mat2": "self"})
def bmm(input: Array, mat2: Array) -> Array:
    """Multiply two batches of matrices."""
    _need_3d(input, mat2)
    _check_bmm(input, mat2, input.shape[0], mat2.shape[0])
    return lax.batch_matmul(input, mat2)


@op(saves={"self": "vec", "vec": "self"})
def mv(input: Array, vec: Array) -> Array:
    """Multiply a matrix by a vector."""
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    _check_mv(input.shape[0], input.shape[1], vec, input)
    return lax.dot(input, vec)


@op(saves={"self": "tensor", "tensor": "self"})
def dot(input: Array, tensor: Array) -> Array:
    """Compute the inner product of two vectors."""
    _check_dot(input, tensor)
    return lax.dot(input, tensor)


@op(saves={"self": "other", "other": "self"})
def vdot(input: Array, other: Array) -> Array:
    """Compute the inner product of two vectors, the first conjugated."""
    _check_dot(input, other)
    return lax.dot(lax.conj(input) if input.dtype.kind == "c" else input, other)
