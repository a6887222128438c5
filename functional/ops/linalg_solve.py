"""Solvers and factorizations beyond the first ones: triangular, LU, least squares, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import linalg as scipy_linalg

from .._dtypes import cast, complex_of, finfo, promote, real_of
from .._op import Fault, op
from ._nn import wide
from .linalg import _need_float, _need_matrix, _need_square, _singular, _t

Array = jax.Array

L: dict[str, Any] = {"namespace": "linalg", "method": False}


class InvEx(NamedTuple):
    inverse: Array
    info: Array


class CholeskyEx(NamedTuple):
    L: Array
    info: Array


class SolveEx(NamedTuple):
    result: Array
    info: Array


class LUFactor(NamedTuple):
    LU: Array
    pivots: Array


class LUFactorEx(NamedTuple):
    LU: Array
    pivots: Array
    info: Array


class LU(NamedTuple):
    P: Array
    L: Array
    U: Array


class Eig(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


def _info(x: Array) -> Array:
    return jnp.zeros(x.shape[:-2], np.int32)


@op(name="inv_ex", backward="LinalgInvExBackward0", saves={"inverse": "*"}, residuals=True, **L)
def inv_ex(A: Array, *, check_errors: bool = False) -> InvEx:  # noqa: N803
    """The inverse, and 0 (or the zero pivot's number) for each matrix."""
    _need_square("linalg.inv", A)
    zero = jnp.diagonal(lax.linalg.lu(lax.stop_gradient(A))[0], axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0) if A.size else _info(A)
    return InvEx(jnp.linalg.inv(A), info.astype(np.int32))


@op(name="cholesky_ex", backward="LinalgCholeskyExBackward0", saves={"L": "*"}, residuals=True, **L)
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


@op(name="solve_ex", backward="LinalgSolveExBackward0", saves={"result": "*"}, residuals=True, **L)
def solve_ex(
    A: Array,
    B: Array,
    *,
    left: bool = True,
    check_errors: bool = False,  # noqa: N803
) -> SolveEx:
    """The solution of `A @ X = B`, and 0 (or the zero pivot's number) for each matrix."""
    from .linalg import solve

    return SolveEx(solve(A, B, left), inv_ex(lax.stop_gradient(A)).info)


def _batched(a: Array, b: Array) -> tuple[Array, Array]:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (
        jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:]),
    )  # fmt: skip


@op(name="solve_triangular", backward="LinalgSolveTriangularBackward0", residuals=True,
    saves={"self": "*", "result": "*"}, **L)  # fmt: skip
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


@op(name="matrix_exp", aliases=(), backward="LinalgMatrixExpBackward0", residuals=True,
    saves={"self": "*"})  # fmt: skip
def matrix_exp(input: Array) -> Array:
    """The matrix exponential."""
    _need_square("linalg.matrix_exp", input)
    return cast(scipy_linalg.expm(wide(input)), input.dtype) if input.size else input


@op(name="matrix_exp", backward="LinalgMatrixExpBackward0", residuals=True, saves={"self": "*"},
    **L)  # fmt: skip
def linalg_matrix_exp(A: Array) -> Array:  # noqa: N803
    """The matrix exponential."""
    return matrix_exp(A)


def _pivots(permutation_free: Array) -> Array:
    return (permutation_free + 1).astype(np.int32)


def _check_lu_factor(A: Array, *, pivot: bool = True) -> list[Fault]:  # noqa: N803
    text = (
        "U[{order},{order}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )
    return _singular("torch.linalg.lu_factor", text, A)


@op(name="lu_factor", backward="LinalgLuFactorExBackward0", residuals=True,
    check=_check_lu_factor, saves={"LU": "*", "pivots": "*"}, **L)  # fmt: skip
def lu_factor(A: Array, *, pivot: bool = True) -> LUFactor:  # noqa: N803
    """LU factors in one matrix, and the rows swapped (counted from 1)."""
    _need_matrix("linalg.lu_factor", A)
    _need_float("linalg.lu_factor", A)
    lu, pivots, _ = lax.linalg.lu(A)
    return LUFactor(lu, _pivots(pivots))


@op(name="lu_factor_ex", backward="LinalgLuFactorExBackward0", residuals=True,
    saves={"LU": "*", "pivots": "*"}, **L)  # fmt: skip
def lu_factor_ex(
    A: Array,
    *,
    pivot: bool = True,
    check_errors: bool = False,  # noqa: N803
) -> LUFactorEx:
    """`lu_factor`, and 0 (or the zero pivot's number) for each matrix."""
    lu, pivots = lu_factor(A)
    zero = jnp.diagonal(lax.stop_gradient(lu), axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0) if A.size else _info(A)
    return LUFactorEx(lu, pivots, info.astype(np.int32))


def _unpacked(lu: Array, permutation: Array) -> LU:
    rows, columns = lu.shape[-2:]
    k = min(rows, columns)
    lower = jnp.tril(lu[..., :, :k], -1) + jnp.eye(rows, k, dtype=lu.dtype)
    upper = jnp.triu(lu[..., :k, :])
    p = (permutation[..., None, :] == jnp.arange(rows)[:, None]).astype(lu.dtype)
    return LU(p, lower, upper)


@op(name="lu", backward="LinalgLuBackward0", residuals=True, constant_outputs=(0,),
    saves={"P": "*", "L": "*", "U": "*"}, **L)  # fmt: skip
def linalg_lu(A: Array, *, pivot: bool = True) -> LU:  # noqa: N803
    """Permutation, lower and upper triangular factors."""
    _need_matrix("linalg.lu", A)
    _need_float("linalg.lu", A)
    lu, _, permutation = lax.linalg.lu(A)
    return _unpacked(lu, permutation)


@op(method=False, backward="LuUnpackBackward0", constant_outputs=(0,))
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True,  # noqa: N803
    unpack_pivots: bool = True,
) -> LU:  # fmt: skip
    """`lu_factor`'s results as permutation, lower and upper triangular factors."""
    permutation = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, LU_data.shape[-2])
    made = _unpacked(LU_data, permutation)
    none = jnp.zeros(0, LU_data.dtype)
    if not unpack_data:
        made = LU(made.P, none, none)
    return made if unpack_pivots else LU(none, made.L, made.U)


def _lu_solved(lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Array:
    lu, b = _batched(lu, b)
    if not b.size:
        return b
    batch = b.shape[:-2]
    permutation = lax.linalg.lu_pivots_to_permutation(pivots - 1, lu.shape[-1])
    permutation = jnp.broadcast_to(permutation, (*batch, lu.shape[-1]))
    p, lower, upper = _unpacked(lu, permutation)
    whole = p @ lower @ upper
    whole = _t(whole) if adjoint else whole
    if left:
        return jnp.linalg.solve(whole, b)
    return jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(whole, -1, -2), jnp.swapaxes(b, -1, -2)),
                        -1, -2)  # fmt: skip


@op(name="lu_solve", backward="LinalgLuSolveBackward0", residuals=True,
    saves={"LU": "*", "pivots": "*", "result": "*"}, **L)  # fmt: skip
def linalg_lu_solve(
    LU: Array,
    pivots: Array,
    B: Array,
    *,
    left: bool = True,
    adjoint: bool = False,  # noqa: N803
) -> Array:
    """The solution for a matrix whose `lu_factor` this is."""
    return _lu_solved(LU, pivots, B, left, adjoint)


@op(backward="LinalgLuSolveBackward0", residuals=True, saves={"self": "*", "LU_data": "*"})
def lu_solve(input: Array, LU_data: Array, LU_pivots: Array) -> Array:  # noqa: N803
    """The solution for a matrix whose LU factors these are."""
    return _lu_solved(LU_data, LU_pivots, input, True, False)


@op(name="eig", backward="LinalgEigBackward0", residuals=True,
    saves={"eigenvalues": "*", "eigenvectors": "*"}, **L)  # fmt: skip
def eig(A: Array) -> Eig:  # noqa: N803
    """Eigenvalues and eigenvectors of square matrices, complex."""
    _need_square("linalg.eig", A)
    if not A.size:
        kind = complex_of(A.dtype)
        return Eig(jnp.zeros(A.shape[:-1], kind), jnp.zeros(A.shape, kind))
    values, vectors = lax.linalg.eig(A, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return Eig(values, vectors)


@op(name="eigvals", backward="LinalgEigBackward0", residuals=True, saves={"eigenvalues": "*"}, **L)
def eigvals(A: Array) -> Array:  # noqa: N803
    """Eigenvalues of square matrices, complex."""
    _need_square("linalg.eigvals", A)
    return jnp.linalg.eigvals(A)


@op(name="matrix_rank", differentiable=False, **L)
def matrix_rank(
    A: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None,  # noqa: N803
    rtol: Any = None,
) -> Array:  # fmt: skip
    """How many singular values are larger than the tolerance."""
    _need_matrix("linalg.matrix_rank", A)
    if not A.size:
        return jnp.zeros(A.shape[:-2], np.int64)
    s = jnp.abs(jnp.linalg.eigvalsh(A)) if hermitian else jnp.linalg.svd(A, compute_uv=False)
    largest = s.max(-1)
    absolute = tol if tol is not None else (0.0 if atol is None else atol)
    if rtol is None:
        given = tol is not None or (atol is not None and (hasattr(atol, "dtype") or atol > 0))
        rtol = 0.0 if given else finfo(A.dtype).eps * max(A.shape[-2:])
    limit = jnp.maximum(jnp.asarray(absolute), rtol * largest)
    return (s > limit[..., None]).sum(-1).astype(np.int64)


@op(name="vander", backward="CumprodBackward0", **L)
def vander(x: Array, *, N: int | None = None) -> Array:  # noqa: N803
    """Powers of `x`, 0 to `N - 1`, along a new last dim."""
    x = x.reshape(1) if x.ndim == 0 else x
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = x.astype(np.int64) if x.dtype == bool else x
    return jnp.stack([jnp.ones_like(x), *_powers(x, n - 1)], -1)


def _powers(x: Array, count: int) -> list[Array]:
    made = [x]
    while len(made) < count:
        made.append(made[-1] * x)
    return made


@op(name="diagonal", backward="DiagonalBackward0", view=True, **L)
def linalg_diagonal(A: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:  # noqa: N803
    """Diagonals of the last two dims."""
    from .slices import diagonal

    return diagonal(A, offset, dim1, dim2)


def _check_tensorinv(A: Array, ind: int = 2) -> list[Fault]:  # noqa: N803
    text = (
        "The diagonal element {order} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )
    return _singular("inv", text, A.reshape(int(np.prod(A.shape[:ind])), -1))


@op(name="tensorinv", backward="ViewBackward0", residuals=True, check=_check_tensorinv, **L)
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


@op(name="tensorsolve", backward="ViewBackward0", residuals=True, **L)
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


@op(name="householder_product", backward="LinalgHouseholderProductBackward0", residuals=True,
    saves={"input": "*", "tau": "*", "result": "*"}, **L)  # fmt: skip
def householder_product(A: Array, tau: Array) -> Array:  # noqa: N803
    """The first columns of a product of Householder reflections."""
    _need_matrix("linalg.householder_product", A)
    rows, columns = A.shape[-2:]
    out = jnp.broadcast_to(jnp.eye(rows, columns, dtype=A.dtype), A.shape)
    for k in reversed(range(tau.shape[-1])):
        v = jnp.where(jnp.arange(rows) > k, A[..., :, k], jnp.zeros((), A.dtype))
        v = v.at[..., k].set(1)
        along = jnp.einsum("...i,...ij->...j", jnp.conj(v), out)
        out = out - tau[..., k, None, None] * v[..., :, None] * along[..., None, :]
    return out


@op(name="cond", backward="DivBackward0", residuals=True, **L)
def cond(A: Array, p: Any = None) -> Array:  # noqa: N803
    """The condition number in a norm, the 2-norm by default."""
    from .norms import matrix_norm

    _need_matrix("linalg.cond", A)
    if p in (None, 2, -2):
        s = jnp.linalg.svd(A, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    _need_square("linalg.cond", A)
    return matrix_norm(A, p) * matrix_norm(jnp.linalg.inv(A), p)


class SVDOld(NamedTuple):
    U: Array
    S: Array
    V: Array


@op(name="svd", backward="LinalgSvdBackward0", residuals=True,
    saves={"U": "*", "S": "*", "Vh": "*"})  # fmt: skip
def svd(input: Array, some: bool = True, compute_uv: bool = True) -> SVDOld:
    """Singular value decomposition, `U @ diag(S) @ V.mH`, by its old name."""
    from .decompositions import linalg_svd

    u, s, vh = linalg_svd(input, not some)
    if not compute_uv:
        u, vh = jnp.zeros(u.shape, u.dtype), jnp.zeros(vh.shape, vh.dtype)
    return SVDOld(u, s, _t(vh))


class Lstsq(NamedTuple):
    solution: Array
    residuals: Array
    rank: Array
    singular_values: Array


@op(
    name="lstsq", backward="LinalgLstsqBackward0", residuals=True, constant_outputs=(3,),
    saves={"self": "*"}, **L,
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
