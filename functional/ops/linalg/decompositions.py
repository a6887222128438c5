"""Factorizations of matrices: Cholesky, QR, SVD and eigenvalues."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import real_of
from ...program.op import Decorator, Fault, ops_with
from .checks import need_equal_sides, need_float, need_kernel, need_matrix, need_square
from .linalg import (
    LINALG,
    QR,
    SVD,
    Eigh,
    OldQR,
    _cholesky_failures,
    _failures,
    _t,
    as_far_as_it_goes,
)

op: Decorator = ops_with(steep=True)

Array = jax.Array


def _check_linalg_cholesky(A: Array, upper: bool = False) -> list[Fault]:  # noqa: N803
    return _cholesky_failures("linalg.cholesky", _t(A) if upper and A.ndim > 1 else A)


def _check_cholesky(input: Array, upper: bool = False) -> list[Fault]:
    return _cholesky_failures("cholesky", _t(input) if upper and input.ndim > 1 else input)


@jax.custom_jvp
def _lower_factor(x: Array) -> Array:
    return lax.linalg.cholesky(jnp.tril(x) + _t(jnp.tril(x, -1)), symmetrize_input=False)


@_lower_factor.defjvp
def _lower_factor_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    factor = _lower_factor(*primals)
    return factor, _along(factor, tangents[0])


def _along(factor: Array, tangent: Array) -> Array:
    # The gradient is spread over both triangles, as PyTorch's, though values come from one; on
    # the diagonal of complex matrices it keeps the imaginary part.
    inner = lax.linalg.triangular_solve(factor, tangent, left_side=True, lower=True)
    inner = lax.linalg.triangular_solve(
        factor, inner, left_side=False, lower=True, transpose_a=True, conjugate_a=True
    )
    return factor @ (0.5 * (jnp.tril(inner) + jnp.tril(_t(inner), -1)))


@jax.custom_jvp
def _part_of_factor(x: Array) -> Array:
    """Return the lower factor; of matrices that have none, the part that LAPACK leaves."""
    return as_far_as_it_goes(jnp.tril(x) + _t(jnp.tril(x, -1)))[0]


@_part_of_factor.defjvp
def _part_of_factor_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    factor = _part_of_factor(*primals)
    return factor, _along(factor, tangents[0])


def cholesky_as_far(x: Array, upper: bool) -> tuple[Array, Array]:
    """Return the factor as far as LAPACK comes, and the leading minor it stops at, or 0."""
    if not x.size:
        return x, jnp.zeros(x.shape[:-2], np.int32)
    seen = x + lax.stop_gradient(_t(x) - x) if upper else x
    still = lax.stop_gradient(seen)
    order = as_far_as_it_goes(jnp.tril(still) + _t(jnp.tril(still, -1)))[1].astype(np.int32)
    factor = _part_of_factor(seen)
    return (_t(factor) if upper else factor), order


def _cholesky(x: Array, upper: bool) -> Array:
    if not upper:
        return _lower_factor(x)
    # Values of the upper triangle in the lower one; gradients go where they are.
    return _t(_lower_factor(x + lax.stop_gradient(_t(x) - x)))


@op(name="cholesky", **LINALG, backward="LinalgCholeskyExBackward0",
    saves={"L": "*"}, check=_check_linalg_cholesky, residuals=True)  # fmt: skip
def linalg_cholesky(A: Array, upper: bool = False) -> Array:  # noqa: N803
    """Lower (or upper) triangular factor of positive-definite matrices."""
    need_square("linalg.cholesky", A)
    need_kernel("cholesky_cpu", A)
    return _cholesky(A, upper)


@op(saves={"result": "*"}, check=_check_cholesky, residuals=True)
def cholesky(input: Array, upper: bool = False) -> Array:
    """Lower (or upper) triangular factor of positive-definite matrices."""
    if not input.size:  # of any shape
        return input
    need_equal_sides("cholesky", input)
    need_kernel("cholesky_cpu", input)
    return _cholesky(input, upper)


@op(name="qr", **LINALG, backward="LinalgQrBackward0",
    saves={"Q": "*", "R": "*"}, residuals=True)  # fmt: skip
def linalg_qr(A: Array, mode: str = "reduced") -> QR:  # noqa: N803
    """Compute orthogonal and upper triangular factors; mode "r" gives an empty `Q`."""
    need_matrix("linalg.qr", A)
    need_float("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    need_kernel("geqrf_cpu", A, empty=True)
    if mode == "r":
        return QR(jnp.zeros(0, A.dtype), jnp.linalg.qr(A, "r"))
    return QR(*jnp.linalg.qr(A, mode))


@op(backward="LinalgQrBackward0", saves={"Q": "*", "R": "*"}, residuals=True)
def qr(input: Array, some: bool = True) -> OldQR:
    """Compute orthogonal and upper triangular factors."""
    return OldQR(*linalg_qr(input, "reduced" if some else "complete"))


def _svd(x: Array, full: bool) -> SVD:
    rows, columns = x.shape[-2:]
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    if full and rows != columns:
        # JAX differentiates the reduced form; what completes the bases has no gradient.
        whole = jnp.linalg.svd(lax.stop_gradient(x), full_matrices=True)
        u = jnp.concatenate([u, whole[0][..., columns:]], -1) if rows > columns else u
        vh = jnp.concatenate([vh, whole[2][..., rows:, :]], -2) if columns > rows else vh
    return SVD(u, s, vh)


def _need_svd(A: Array, driver: str | None) -> None:  # noqa: N803
    need_matrix("linalg.svd", A)
    need_float("linalg.svd", A)
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    need_kernel("linalg_svd_cpu", A)


def svd_failures(x: Array) -> list[Fault]:
    """Return the faults of NaN, which LAPACK looks for before it begins."""
    if x.ndim < 2 or not x.size:
        return []
    text = "The algorithm failed to converge because the input matrix contained non-finite values."
    failed = jnp.isnan(x).any((-2, -1))
    return _failures("linalg.svd", text, failed, jnp.ones(failed.shape, np.int64), 1)


def _check_svd(A: Array, *args: Any, **kwargs: Any) -> list[Fault]:  # noqa: N803
    return svd_failures(A)


@op(name="svd", **LINALG, backward="LinalgSvdBackward0",
    saves={"U": "*", "S": "*", "Vh": "*"}, residuals=True, check=_check_svd)  # fmt: skip
def linalg_svd(
    A: Array, full_matrices: bool = True, *, driver: str | None = None,  # noqa: N803
) -> SVD:  # fmt: skip
    """Compute the singular value decomposition, `U @ diag(S) @ Vh`."""
    _need_svd(A, driver)
    return _svd(A, full_matrices)


@op(name="svdvals", **LINALG, backward="LinalgSvdBackward0",
    saves={"S": "*"}, residuals=True, check=_check_svd)  # fmt: skip
def svdvals(A: Array, *, driver: str | None = None) -> Array:  # noqa: N803
    """Compute singular values, largest first."""
    _need_svd(A, driver)
    return jnp.linalg.svd(A, compute_uv=False)


def _is_lower(A: Array, UPLO: str) -> bool:  # noqa: N803
    need_equal_sides("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    need_kernel("linalg_eigh_cpu", A)
    return UPLO.upper() == "L"


@op(name="eigh", **LINALG, backward="LinalgEighBackward0",
    saves={"eigenvalues": "*", "eigenvectors": "*"}, residuals=True)  # fmt: skip
def eigh(A: Array, UPLO: str = "L") -> Eigh:  # noqa: N803
    """Compute eigenvalues, smallest first, and eigenvectors of symmetric matrices, by a
    triangle."""
    lower = _is_lower(A, UPLO)
    if not A.size:  # of integers too
        return Eigh(jnp.zeros(A.shape[:-1], real_of(A.dtype)), A)
    whole = _of_triangle(lower, A)
    vectors, values = lax.linalg.eigh(whole, lower=lower, symmetrize_input=False)
    known = jnp.isfinite(whole).all((-2, -1))[..., None]  # else LAPACK leaves what it had
    return Eigh(jnp.where(known, values, jnp.nan), vectors)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _of_triangle(lower: bool, x: Array) -> Array:
    """Complete a triangle to the Hermitian matrix that has it."""
    part = (jnp.tril if lower else jnp.triu)(x)
    diagonal = jnp.real(part * jnp.eye(x.shape[-1], dtype=x.dtype))
    return (part + _t(part) - diagonal).astype(x.dtype)


@_of_triangle.defjvp
def _of_triangle_jvp(lower: bool, primals: tuple[Array], tangents: tuple[Array]) -> Any:
    # PyTorch's gradient is Hermitian, though values come from one triangle.
    return _of_triangle(lower, *primals), (tangents[0] + _t(tangents[0])) / 2


@op(name="eigvalsh", **LINALG, backward="LinalgEighBackward0",
    saves={"eigenvalues": "*", "eigenvectors": "*"}, residuals=True)  # fmt: skip
def eigvalsh(A: Array, UPLO: str = "L") -> Array:  # noqa: N803
    """Compute eigenvalues of symmetric matrices, smallest first."""
    return eigh(A, UPLO).eigenvalues
