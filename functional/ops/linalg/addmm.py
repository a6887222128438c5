"""Products that are scaled and added to an input: addmm and its family."""

from __future__ import annotations

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
from .matmul import _check_bmm, _check_mm, _check_mv, _need_3d

Array = jax.Array


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
