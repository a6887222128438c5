"""What is read from eigenvalues and singular values: ranks, condition numbers, `eig`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._dtypes import complex_of, finfo
from .._op import op
from .decompositions import eigvalsh
from .linalg import LINALG, _need_matrix, _need_square, _t

Array = jax.Array


class Eig(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


@op(name="eig", backward="LinalgEigBackward0", residuals=True,
    saves={"eigenvalues": "*", "eigenvectors": "*"}, **LINALG)  # fmt: skip
def eig(A: Array) -> Eig:  # noqa: N803
    """Eigenvalues and eigenvectors of square matrices, complex."""
    _need_square("linalg.eig", A)
    if not A.size:
        kind = complex_of(A.dtype)
        return Eig(jnp.zeros(A.shape[:-1], kind), jnp.zeros(A.shape, kind))
    values, vectors = lax.linalg.eig(A, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return Eig(values, vectors)


@op(
    name="eigvals",
    backward="LinalgEigBackward0",
    residuals=True,
    saves={"eigenvalues": "*"},
    **LINALG,
)
def eigvals(A: Array) -> Array:  # noqa: N803
    """Eigenvalues of square matrices, complex."""
    _need_square("linalg.eigvals", A)
    return jnp.linalg.eigvals(A)


@op(name="matrix_rank", differentiable=False, **LINALG)
def matrix_rank(
    A: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None,  # noqa: N803
    rtol: Any = None,
) -> Array:  # fmt: skip
    """How many singular values are larger than the tolerance."""
    _need_matrix("linalg.matrix_rank", A)
    if not A.size:
        return jnp.zeros(A.shape[:-2], np.int64)
    # Of the lower triangle: JAX's own takes the mean of both.
    s = jnp.abs(eigvalsh(A)) if hermitian else jnp.linalg.svd(A, compute_uv=False)
    largest = s.max(-1)
    absolute = tol if tol is not None else (0.0 if atol is None else atol)
    if rtol is None:
        given = tol is not None or (atol is not None and (hasattr(atol, "dtype") or atol > 0))
        rtol = 0.0 if given else finfo(A.dtype).eps * max(A.shape[-2:])
    limit = jnp.maximum(jnp.asarray(absolute), rtol * largest)
    return (s > limit[..., None]).sum(-1).astype(np.int64)


@op(name="cond", backward="DivBackward0", residuals=True, **LINALG)
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
