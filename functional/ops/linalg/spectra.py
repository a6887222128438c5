"""Results read from eigenvalues and singular values: ranks, condition numbers, `eig`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import complex_of, finfo, is_complex, is_integral, real_of, scalar_name
from ...program.op import Decorator, Fault, ops_with
from ..reduction.norms import matrix_norm
from .checks import need_epsilon, need_equal_sides, need_kernel, need_matrix
from .decompositions import eigvalsh, linalg_svd, svd_failures, svdvals
from .linalg import LINALG, _t, linalg_inv

op: Decorator = ops_with(steep=True)

Array = jax.Array


class Eig(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


def _need_eig(name: str, x: Array) -> None:
    need_equal_sides(name, x)
    if is_integral(x.dtype):
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(x.dtype)}")
    need_kernel("linalg_eig_out_cpu", x, empty=True)


@op(name="eig", backward="LinalgEigBackward0", residuals=True,
    saves={"eigenvalues": "*", "eigenvectors": "*"}, **LINALG)  # fmt: skip
def eig(A: Array) -> Eig:  # noqa: N803
    """Compute eigenvalues and eigenvectors of square matrices, complex."""
    _need_eig("linalg.eig", A)
    if not A.size:
        kind = complex_of(A.dtype)
        return Eig(jnp.zeros(A.shape[:-1], kind), jnp.zeros(A.shape, kind))
    values, vectors = lax.linalg.eig(A, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return Eig(values, vectors)


@jax.custom_jvp
def _eigvals(A: Array) -> Array:  # noqa: N803
    return jnp.linalg.eigvals(A)


@_eigvals.defjvp
def _eigvals_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Differentiate by the eigenvectors: JAX's own rule cannot be differentiated in its turn."""
    (A,), (dA,) = primals, tangents  # noqa: N806
    values, vectors = lax.linalg.eig(A, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    moved = jnp.linalg.solve(vectors, dA.astype(vectors.dtype) @ vectors)
    return values, jnp.diagonal(moved, axis1=-2, axis2=-1)


@op(
    name="eigvals",
    backward="LinalgEigBackward0",
    residuals=True,
    saves={"eigenvalues": "*"},
    **LINALG,
)
def eigvals(A: Array) -> Array:  # noqa: N803
    """Compute eigenvalues of square matrices, complex."""
    _need_eig("linalg.eigvals", A)
    return _eigvals(A)


def _check_rank(
    A: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None,  # noqa: N803
    rtol: Any = None,
) -> list[Fault]:  # fmt: skip
    return [] if hermitian else svd_failures(A)


@op(name="matrix_rank", differentiable=False, check=_check_rank, **LINALG)
def matrix_rank(
    A: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None,  # noqa: N803
    rtol: Any = None,
) -> Array:  # fmt: skip
    """Count the singular values that are larger than the tolerance."""
    name = "torch.linalg.matrix_rank"
    need_matrix(name, A, "input")
    for argument, given in (("atol", tol if atol is None else atol), ("rtol", rtol)):
        if hasattr(given, "dtype") and is_complex(given.dtype):
            raise RuntimeError(
                f"{name}: {argument} tensor of complex type is not supported. Got "
                + scalar_name(given.dtype)
            )
    if tol is None and rtol is None:
        need_epsilon(A)
    if not A.size:
        return jnp.zeros(A.shape[:-2], np.int64)
    # Of the lower triangle: JAX's own takes the mean of both.
    s = jnp.abs(eigvalsh(A)) if hermitian else svdvals(A)
    largest = s.max(-1)
    absolute = tol if tol is not None else (0.0 if atol is None else atol)
    if rtol is None:
        given = tol is not None or (atol is not None and (hasattr(atol, "dtype") or atol > 0))
        rtol = 0.0 if given else finfo(A.dtype).eps * max(A.shape[-2:])
    limit = jnp.maximum(jnp.asarray(absolute), rtol * largest)
    return (s > limit[..., None]).sum(-1).astype(np.int64)


@op(name="cond", backward="DivBackward0", residuals=True, **LINALG)
def cond(A: Array, p: Any = None) -> Array:  # noqa: N803
    """Compute the condition number in a norm, the 2-norm by default."""
    _need_order(A, p)
    if not A.size:
        return jnp.zeros(A.shape[:-2], real_of(A.dtype) if is_complex(A.dtype) else A.dtype)
    if p in (None, 2, -2):
        s = svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if p == "nuc":
        s = svdvals(A)
        return s.sum(-1) * (1 / s).sum(-1)
    inverse = linalg_inv(A)
    return matrix_norm(A, p) * matrix_norm(inverse, p)


def _need_order(A: Array, p: Any) -> None:  # noqa: N803
    said = p if isinstance(p, str) else f"{2 if p is None else p:g}"
    if isinstance(p, str):
        need_equal_sides(f"linalg.cond(ord={said})", A)
        known = p in ("fro", "nuc")
    else:
        if A.ndim < 2:
            raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
        known = p is None or abs(p) in (1, 2, math.inf)
    if not known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {said}")
    if A.size and said not in ("2", "-2"):
        need_equal_sides(f"linalg.cond(ord={said})", A)


class SVDOld(NamedTuple):
    U: Array
    S: Array
    V: Array


@op(backward="LinalgSvdBackward0", residuals=True)
def svd(input: Array, some: bool = True, compute_uv: bool = True) -> SVDOld:
    """Compute the singular value decomposition, `U @ diag(S) @ V.mH`, by its old name."""
    if input.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{input.ndim} dimensions instead"
        )
    u, s, vh = linalg_svd(input, not some and compute_uv)
    if not compute_uv:  # whatever `some` says
        u, vh = (jnp.zeros((*s.shape[:-1], n, n), u.dtype) for n in input.shape[-2:])
    return SVDOld(u, s, _t(vh))
