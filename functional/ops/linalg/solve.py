"""Solving: triangular, by Cholesky factors, least squares, over several dims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast
from ...program.op import Decorator, Fault, ops_with
from ..shape import dimensions
from .checks import (
    batched,
    need_equal_sides,
    need_kernel,
    need_linear_system,
    need_solvable,
    need_square,
)
from .decompositions import cholesky_as_far
from .linalg import LINALG, _check_inv, _cholesky_failures, _failures, _t, _unsolvable, solve

op: Decorator = ops_with(steep=True)
Array = jax.Array


class InvEx(NamedTuple):
    inverse: Array
    info: Array


class CholeskyEx(NamedTuple):
    L: Array
    info: Array


class SolveEx(NamedTuple):
    result: Array
    info: Array


def _info(x: Array) -> Array:
    return jnp.zeros(x.shape[:-2], np.int32)


# Faults are looked for where the caller asks for them.


def _check_inv_ex(A: Array, *, check_errors: bool = False) -> list[Fault]:  # noqa: N803
    return _check_inv(A, "linalg.inv_ex") if check_errors else []


def _check_cholesky_ex(
    A: Array, *, upper: bool = False, check_errors: bool = False,  # noqa: N803
) -> list[Fault]:  # fmt: skip
    if not check_errors:
        return []
    return _cholesky_failures("linalg.cholesky_ex", _t(A) if upper and A.ndim > 1 else A)


def _check_solve_ex(
    A: Array, B: Array, *, left: bool = True, check_errors: bool = False,  # noqa: N803
) -> list[Fault]:  # fmt: skip
    return _unsolvable("torch.linalg.solve_ex", A) if check_errors else []


@op(name="inv_ex", backward="LinalgInvExBackward0", saves={"inverse": "*"}, residuals=True,
    check=_check_inv_ex, **LINALG)  # fmt: skip
def inv_ex(A: Array, *, check_errors: bool = False) -> InvEx:  # noqa: N803
    """Compute the inverse, and 0 (or the zero pivot's number) for each matrix."""
    need_square("linalg.inv", A, low=False)
    zero = jnp.diagonal(lax.linalg.lu(lax.stop_gradient(A))[0], axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0) if A.size else _info(A)
    return InvEx(jnp.linalg.inv(A), info.astype(np.int32))


@op(
    name="cholesky_ex",
    check=_check_cholesky_ex,
    backward="LinalgCholeskyExBackward0",
    saves={"L": "*"},
    residuals=True,
    **LINALG,
)
def cholesky_ex(
    A: Array,
    *,
    upper: bool = False,
    check_errors: bool = False,  # noqa: N803
) -> CholeskyEx:
    """Compute the Cholesky factor, and 0 (or the order of the first bad minor) for each matrix."""
    need_square("linalg.cholesky", A)
    need_kernel("cholesky_cpu", A)
    return CholeskyEx(*cholesky_as_far(A, upper))


@op(
    name="solve_ex",
    check=_check_solve_ex,
    backward="LinalgSolveExBackward0",
    saves={"A": "*", "result": "*"},
    residuals=True,
    **LINALG,
)
def solve_ex(
    A: Array,
    B: Array,
    *,
    left: bool = True,
    check_errors: bool = False,  # noqa: N803
) -> SolveEx:
    """Solve `A @ X = B`; also return 0 (or the zero pivot's number) for each matrix."""
    return SolveEx(solve(A, B, left), inv_ex(lax.stop_gradient(A)).info)


@op(name="solve_triangular", backward="LinalgSolveTriangularBackward0", residuals=True,
    saves={"self": "*", "result": "*"}, **LINALG)  # fmt: skip
def solve_triangular(
    A: Array,
    B: Array,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,  # noqa: N803
) -> Array:
    """Solve `A @ X = B` (or `X @ A = B`) for triangular `A`, in the dtype of `A`."""
    need_solvable("linalg.solve_triangular", A, B, left)
    need_kernel("triangular_solve_cpu", A, empty=True)
    a, b = batched(A, cast(B, A.dtype))
    if not b.size or not a.size:
        return jnp.zeros(b.shape, b.dtype)
    return lax.linalg.triangular_solve(
        a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular
    )


class TriangularSolve(NamedTuple):
    solution: Array
    cloned_coefficient: Array


@op(backward="TriangularSolveBackward0", residuals=True,
    saves={"self": "*", "A": "*", "solution": "*"})  # fmt: skip
def triangular_solve(
    input: Array, A: Array, upper: bool = True, transpose: bool = False,  # noqa: N803
    unitriangular: bool = False,
) -> TriangularSolve:  # fmt: skip
    """Solve `A @ X = input`; also return a copy of `A`. An old name."""
    name = "torch.triangular_solve"
    for argument, given in (("b", input), ("A", A)):
        if given.ndim < 2:
            raise RuntimeError(
                f"{name}: Expected {argument} to have at least 2 dimensions, but it has "
                f"{given.ndim} dimensions instead"
            )
    need_linear_system("triangular_solve", A, input)
    a, b = batched(A, input)
    need_kernel("triangular_solve_cpu", A, empty=True)
    x = (
        lax.linalg.triangular_solve(
            a,
            b,
            left_side=True,
            lower=not upper,
            transpose_a=transpose,
            unit_diagonal=unitriangular,
        )
        if b.size and a.size
        else jnp.zeros(b.shape, b.dtype)
    )
    return TriangularSolve(x, a)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _by_factor(factor: Array, b: Array, upper: bool) -> Array:
    """Solve for the matrix with this Cholesky factor."""
    a = jnp.triu(factor) if upper else jnp.tril(factor)
    first, second = (_t(a), a) if upper else (a, _t(a))
    y = lax.linalg.triangular_solve(first, b, left_side=True, lower=True)
    return lax.linalg.triangular_solve(second, y, left_side=True, lower=False)


@_by_factor.defjvp
def _by_factor_jvp(upper: bool, primals: tuple[Array, Array], tangents: Any) -> Any:
    # PyTorch's gradient of the factor fills both triangles, though values come from one.
    (factor, b), (df, db) = primals, tangents
    a = jnp.triu(factor) if upper else jnp.tril(factor)
    x = _by_factor(factor, b, upper)
    change = _t(df) @ a + _t(a) @ df if upper else df @ _t(a) + a @ _t(df)
    return x, _by_factor(factor, db - change @ x, upper)


@op(
    backward="CholeskySolveBackward0", residuals=True,
    saves={"self": "*", "input2": "*", "result": "*"},
)  # fmt: skip
def cholesky_solve(input: Array, input2: Array, upper: bool = False) -> Array:
    """Solve for a matrix whose Cholesky factor is `input2`."""
    for name, given in (("b", input), ("u", input2)):
        if given.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {given.ndim} dimensions instead"
            )
    need_linear_system("cholesky_solve", input2, input)
    a, b = batched(input2, input)
    need_kernel("cholesky_solve_cpu", input2, empty=True)
    if not b.size or not a.size:
        return jnp.zeros(b.shape, b.dtype)
    return _by_factor(a, b, upper)


def _check_cholesky_inverse(input: Array, upper: bool = False) -> list[Fault]:
    if input.ndim < 2 or input.shape[-1] != input.shape[-2] or not input.size:
        return []
    zero = jnp.diagonal(input, axis1=-2, axis2=-1) == 0
    text = (
        "The diagonal element {order} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )
    order = jnp.argmax(zero, axis=-1) + 1
    return _failures("cholesky_inverse", text, zero.any(-1), order, zero.shape[-1])


@op(backward="CholeskyInverseBackward0", residuals=True, check=_check_cholesky_inverse,
    saves={"self": "*", "result": "*"})  # fmt: skip
def cholesky_inverse(input: Array, upper: bool = False) -> Array:
    """Invert the matrix whose Cholesky factor is `input`."""
    need_equal_sides("cholesky_inverse", input)
    need_kernel("cholesky_inverse_out_cpu", input, empty=True)
    eye = jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=input.dtype), input.shape)
    return cholesky_solve(eye, input, upper)


def _check_tensorinv(A: Array, ind: int = 2) -> list[Fault]:  # noqa: N803
    return _check_inv(A.reshape(int(np.prod(A.shape[:ind])), -1), "inv")


@op(name="tensorinv", backward="ViewBackward0", residuals=True, check=_check_tensorinv, **LINALG)
def tensorinv(A: Array, ind: int = 2) -> Array:  # noqa: N803
    """Compute the inverse of `tensordot(A, .)`."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    if ind > A.ndim:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {A.ndim}")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(columns)} != {math.prod(rows)}"
        )
    flat = A.reshape(math.prod(rows), math.prod(columns))
    need_square("linalg.inv", flat, low=False)
    return jnp.linalg.inv(flat).reshape(columns + rows)


@op(name="tensorsolve", backward="ViewBackward0", residuals=True, **LINALG)
def tensorsolve(A: Array, B: Array, dims: Sequence[int] | None = None) -> Array:  # noqa: N803
    """Solve `tensordot(A, X) = B`."""
    if dims is not None:
        A = jnp.moveaxis(A, *_dims_to_the_end(dims, A.ndim))  # noqa: N806
    if A.ndim < B.ndim:
        raise RuntimeError("cannot create std::vector larger than max_size()")
    shape = A.shape[B.ndim :]
    if math.prod(shape) != B.size:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {B.size}"
        )
    if A.size != B.size**2:
        raise RuntimeError(f"shape '[{B.size}, {B.size}]' is invalid for input of size {A.size}")
    return solve(A.reshape(B.size, B.size), B.reshape(-1)).reshape(shape)


def _dims_to_the_end(dims: Sequence[int], ndim: int) -> tuple[list[int], list[int]]:
    wrapped = [dimensions.wrap_dim(d, ndim) for d in dims]
    if len(set(wrapped)) < len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `source` ({list(dims)})")
    return wrapped, list(range(ndim - len(dims), ndim))
