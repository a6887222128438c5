"""Matrix products and their scaled sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast, cpp_name, is_integral, promote, scalar_name
from ...program.op import op
from ..nn.checks import wide, wide_dtype
from ..shape import dimensions
from .checks import size

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


# Scaled sums -------------------------------------------------------------------------------------


def _blend(input: Array, product: Array, beta: Any, alpha: Any) -> Array:
    """Compute `beta * input + alpha * product`; a `beta` of 0 ignores even NaN."""
    dtype, out = product.dtype, product.shape
    dimensions.expand_size(input.shape, out, scalar_name(input.dtype))

    def scaled(x: Array, factor: Any) -> Array:
        return x if isinstance(factor, (int, float)) and factor == 1 else x * cast(factor, dtype)

    total = scaled(product, alpha)
    if isinstance(beta, (int, float)):
        if beta == 0:
            return total
        input = scaled(cast(input, dtype), beta)
    else:  # a number that became an input
        nothing = jnp.zeros((), dtype)
        input = jnp.where(beta == 0, nothing, scaled(cast(input, dtype), beta))
    return total + jnp.broadcast_to(input, out)


def _need_same_size(have: Sequence[int], out: Sequence[int]) -> None:
    """Raise if a product is written to what has not its shape: these do not broadcast."""
    if tuple(have) != tuple(out):
        raise RuntimeError(
            f"Bad in-place call: input tensor size {list(have)} and output tensor size "
            f"{list(out)} should match"
        )


def _check_addmm_dtypes(input: Array, mat1: Array, mat2: Array) -> None:
    for name, x in (("self", input), ("mat1", mat1)):
        if x.dtype != mat2.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {scalar_name(x.dtype)} and "
                f"{scalar_name(mat2.dtype)}"
            )


def _check_addmm(input: Array, mat1: Array, mat2: Array, beta: Any = 1, alpha: Any = 1) -> None:
    if mat1.ndim == mat2.ndim == 2 and mat1.shape[1] == mat2.shape[0]:
        _need_same_size(input.shape, (mat1.shape[0], mat2.shape[1]))


def _check_addmv(input: Array, mat: Array, vec: Array, beta: Any = 1, alpha: Any = 1) -> None:
    if mat.ndim == 2 and vec.ndim == 1 and input.ndim < 2 and mat.shape[1:] == vec.shape:
        if input.size in (1, mat.shape[0]):
            _need_same_size(input.shape, mat.shape[:1])


_SCALES = ("beta", "alpha")


@op(inplace=True, inplace_check=_check_addmm, numbers=_SCALES,
    saves={"mat1": "mat2", "mat2": "mat1"}, fits={"beta": "any", "alpha": "any"})  # fmt: skip
def addmm(input: Array, mat1: Array, mat2: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Compute `beta * input + alpha * (mat1 @ mat2)`."""
    _check_addmm_dtypes(input, mat1, mat2)
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if x.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {x.ndim}-D tensor")
    _check_mm(mat1.shape[0], mat1.shape[1], mat2, mat1)
    if input.dtype == bool and not mat1.shape[1] and mat1.shape[0] and mat2.shape[1]:
        # It multiplies by `beta` then.
        raise RuntimeError("result type Long can't be cast to the desired output type Bool")
    return _blend(input, lax.dot(mat1, mat2), beta, alpha)


@op(inplace=True, inplace_check=_check_addmv, numbers=_SCALES,
    saves={"mat": "vec", "vec": "mat"}, fits={"beta": "any", "alpha": "any"})  # fmt: skip
def addmv(input: Array, mat: Array, vec: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Compute `beta * input + alpha * (mat @ vec)`."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}"
        )
    _check_mv(mat.shape[0], mat.shape[1], vec, mat, input)
    return _blend(input, lax.dot(mat, vec), beta, alpha)


def _need_1d(name: str, x: Array) -> None:
    if x.ndim != 1:
        raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {x.ndim}-D")


def _check_addr(input: Array, vec1: Array, vec2: Array, beta: Any = 1, alpha: Any = 1) -> None:
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        _need_1d(name, x)
    if input.ndim != 2:
        raise RuntimeError(f"2D tensor expected, got {input.ndim}D tensor for input")
    if input.shape != (vec1.shape[0], vec2.shape[0]):
        raise RuntimeError(
            f"size mismatch, input: {list(input.shape)}, v1: {list(vec1.shape)}, "
            f"v2: {list(vec2.shape)}"
        )


@op(inplace=True, inplace_check=_check_addr, numbers=_SCALES,
    saves={"vec1": "vec2", "vec2": "vec1"}, fits={"beta": "any", "alpha": "any"})  # fmt: skip
def addr(input: Array, vec1: Array, vec2: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Compute `beta * input + alpha * outer(vec1, vec2)`, with type promotion."""
    _need_1d("vec1", vec1)
    _need_1d("vec2", vec2)
    input, vec1, vec2 = promote(input, vec1, vec2)
    for name, x in (("beta", beta), ("alpha", alpha)):
        if input.dtype != bool and np.result_type(x).kind == "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if is_integral(input.dtype) and np.result_type(x).kind in "fc":
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
    return _blend(input, vec1[:, None] * vec2, beta, alpha)


_BATCH_SAVES = {"batch1": "batch2", "batch2": "batch1"}


def _check_baddbmm(
    input: Array, batch1: Array, batch2: Array, beta: Any = 1, alpha: Any = 1
) -> None:
    if batch1.ndim == batch2.ndim == 3 and batch1.shape[::2] == batch2.shape[:2]:
        out = (*batch1.shape[:2], batch2.shape[2])
        dimensions.expand_size(input.shape, out, scalar_name(input.dtype))
        _need_same_size(input.shape, out)


@op(
    inplace=True,
    inplace_check=_check_baddbmm,
    saves=_BATCH_SAVES,
    numbers=_SCALES,
    fits={"beta": "integer", "alpha": "integer"},
)
def baddbmm(input: Array, batch1: Array, batch2: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Compute `beta * input + alpha * bmm(batch1, batch2)`."""
    # PyTorch expands `input` before it checks the ranks.
    out = (size(batch1, 0), size(batch1, 1), size(batch2, 2))
    dimensions.expand_size(input.shape, out, scalar_name(input.dtype))
    if input.dtype != batch1.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {cpp_name(input.dtype)}, batch1: "
            f"{cpp_name(batch1.dtype)}, batch2: {cpp_name(batch2.dtype)}"
        )
    _need_3d(batch1, batch2)
    _check_bmm(batch1, batch2, batch1.shape[0], batch2.shape[0])
    return _blend(input, lax.batch_matmul(batch1, batch2), beta, alpha)


@op(inplace=True, saves=_BATCH_SAVES, numbers=_SCALES, fits={"beta": "any", "alpha": "any"})
def addbmm(input: Array, batch1: Array, batch2: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Compute `beta * input + alpha * sum(bmm(batch1, batch2))` over the batch."""
    out = (size(batch1, 1), size(batch2, 2))
    dimensions.expand_size(input.shape, out, scalar_name(input.dtype))
    _need_3d(batch1, batch2)
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
            f"{batch2.shape[1]}x{batch2.shape[2]})"
        )
    _check_addmm_dtypes(input, batch1, batch2)
    kind = input.dtype
    product = lax.dot_general(
        batch1, batch2, (((0, 2), (0, 1)), ((), ())), preferred_element_type=wide_dtype(kind)
    )
    return _blend(wide(input), product, beta, alpha).astype(kind)
