"""Solving: triangular, by Cholesky factors, least squares, over several dims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._dtypes import promote, real_of
from .._op import Fault, op
from .linalg import LINALG, _need_matrix, _need_square, _singular, _t, solve
from .linalg_spectra import matrix_rank

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


@op(
    name="inv_ex", backward="LinalgInvExBackward0", saves={"inverse": "*"}, residuals=True, **LINALG
)
def inv_ex(A: Array, *, check_errors: bool = False) -> InvEx:  # noqa: N803
    """The inverse, and 0 (or the zero pivot's number) for each matrix."""
    _need_square("linalg.inv", A)
    zero = jnp.diagonal(lax.linalg.lu(lax.stop_gradient(A))[0], axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0) if A.size else _info(A)
    return InvEx(jnp.linalg.inv(A), info.astype(np.int32))


@op(
    name="cholesky_ex",
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
    """The Cholesky factor, and 0 for each matrix that has one."""
    from .decompositions import _cholesky

    _need_square("linalg.cholesky", A)
    factor = _cholesky(A, upper)
    bad = jnp.isnan(factor).any((-2, -1)) if A.size else _info(A)
    return CholeskyEx(factor, bad.astype(np.int32))


@op(
    name="solve_ex",
    backward="LinalgSolveExBackward0",
    saves={"result": "*"},
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
    """The solution of `A @ X = B`, and 0 (or the zero pivot's number) for each matrix."""
    return SolveEx(solve(A, B, left), inv_ex(lax.stop_gradient(A)).info)


def _batched(a: Array, b: Array) -> tuple[Array, Array]:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (
        jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:]),
    )  # fmt: skip


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
    """The solution of `A @ X = B` (or `X @ A = B`) for triangular `A`."""
    _need_square("linalg.solve_triangular", A)
    _need_matrix("linalg.solve_triangular", B)
    if A.dtype != B.dtype:
        A, B = promote(A, B)
    a, b = _batched(A, B)
    if not b.size or not a.size:
        return jnp.zeros(b.shape, b.dtype)
    return lax.linalg.triangular_solve(
        a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular
    )


class TriangularSolve(NamedTuple):
    solution: Array
    cloned_coefficient: Array


@op(backward="TriangularSolveBackward0", residuals=True, saves={"self": "*", "A": "*"})
def triangular_solve(
    input: Array, A: Array, upper: bool = True, transpose: bool = False,  # noqa: N803
    unitriangular: bool = False,
) -> TriangularSolve:  # fmt: skip
    """The solution of `A @ X = input` and a copy of `A`, by an old name."""
    a, b = _batched(A, input)
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
    """The solution for the matrix with this Cholesky factor."""
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


@op(backward="CholeskySolveBackward0", residuals=True, saves={"self": "*", "input2": "*"})
def cholesky_solve(input: Array, L: Array, upper: bool = False) -> Array:  # noqa: N803
    """The solution for a matrix whose Cholesky factor is `L`."""
    a, b = _batched(L, input)
    if not b.size or not a.size:
        return jnp.zeros(b.shape, b.dtype)
    return _by_factor(a, b, upper)


@op(backward="CholeskyInverseBackward0", residuals=True, saves={"self": "*", "result": "*"})
def cholesky_inverse(L: Array, upper: bool = False) -> Array:  # noqa: N803
    """The inverse of the matrix whose Cholesky factor is `L`."""
    eye = jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape)
    return cholesky_solve(eye, L, upper)


def _check_tensorinv(A: Array, ind: int = 2) -> list[Fault]:  # noqa: N803
    text = (
        "The diagonal element {order} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )
    return _singular("inv", text, A.reshape(int(np.prod(A.shape[:ind])), -1))


@op(name="tensorinv", backward="ViewBackward0", residuals=True, check=_check_tensorinv, **LINALG)
def tensorinv(A: Array, ind: int = 2) -> Array:  # noqa: N803
    """The inverse of `tensordot(A, .)`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if int(np.prod(rows)) != int(np.prod(columns)):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {int(np.prod(columns))} != {int(np.prod(rows))}"
        )
    flat = A.reshape(int(np.prod(rows)), -1)
    return jnp.linalg.inv(flat).reshape(columns + rows)


@op(name="tensorsolve", backward="ViewBackward0", residuals=True, **LINALG)
def tensorsolve(A: Array, B: Array, dims: Sequence[int] | None = None) -> Array:  # noqa: N803
    """The solution of `tensordot(A, X) = B`."""
    if dims is not None:
        dims = [d % A.ndim for d in dims]
        A = jnp.transpose(A, [i for i in range(A.ndim) if i not in dims] + list(dims))
    shape = A.shape[B.ndim :]
    if int(np.prod(shape)) != int(np.prod(A.shape[: B.ndim])):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {int(np.prod(shape))} != "
            f"{int(np.prod(A.shape[: B.ndim]))}"
        )
    flat = A.reshape(B.size, -1)
    return jnp.linalg.solve(flat, B.reshape(-1)).reshape(shape)


class Lstsq(NamedTuple):
    solution: Array
    residuals: Array
    rank: Array
    singular_values: Array


@op(
    name="lstsq", backward="LinalgLstsqBackward0", residuals=True, constant_outputs=(3,),
    saves={"self": "*"}, **LINALG,
)  # fmt: skip
def lstsq(A: Array, B: Array, rcond: Any = None, *, driver: str | None = None) -> Lstsq:  # noqa: N803
    """The least squares solution of `A @ X = B`, for matrices of full rank."""
    _need_matrix("torch.linalg.lstsq", A)
    vector = B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]
    b = B[..., None] if vector else B
    x = jnp.linalg.pinv(A) @ b
    none = jnp.zeros(0, real_of(A.dtype))
    rows, columns = A.shape[-2:]
    residuals = none
    if rows > columns and driver != "gelsy":
        off = A @ x - b
        residuals = (off * jnp.conj(off)).real.sum(-2)
    rank = matrix_rank(lax.stop_gradient(A)) if driver != "gels" else jnp.zeros(0, np.int64)
    values = none
    if driver in ("gelsd", "gelss"):
        values = jnp.linalg.svd(lax.stop_gradient(A), compute_uv=False)
    return Lstsq(x[..., 0] if vector else x, residuals, rank, values)
