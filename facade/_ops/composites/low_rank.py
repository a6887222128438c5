"""Randomised factorizations of low rank (Halko, Martinsson and Tropp, arXiv:0909.4061)."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.dtypes import float16, float32, float64
from ..._dispatch.record import apply
from ..creation.factories import randn

_GUESSED = (float16, float32, float64)  # what a guess is drawn in; else in float32
_QR, _SVD = TABLE["linalg.qr"], TABLE["linalg.svd"]


def _basis(a: Any, q: int, niter: int) -> Any:
    """Compute orthonormal columns that span most of the range of `a`: Algorithm 4.4."""
    dtype = a.dtype if a.dtype in _GUESSED or a.is_complex() else float32
    base = apply(_QR, a @ randn(a.shape[-1], q, dtype=dtype)).Q
    for _ in range(niter):
        base = apply(_QR, a.mH @ base).Q
        base = apply(_QR, a @ base).Q
    return base


def svd_lowrank(
    A: Any,
    q: int | None = 6,
    niter: int | None = 2,
    M: Any = None,  # noqa: N803
) -> tuple[Any, Any, Any]:
    """Compute `(U, S, V)` of rank `q` with `A - M` about `U @ diag(S) @ V.mH`: Algorithm 5.1.

    Args:
      A: `(..., m, n)`.
      q: an estimate of the rank, rather too large.
      niter: how many power iterations sharpen the basis.
      M: subtracted from `A`, broadcast to its shape; or None.
    """
    m, n = A.shape[-2:]
    x = A if M is None else A - M.broadcast_to(tuple(A.shape))
    wide = m < n
    x = x.mH if wide else x
    base = _basis(x, 6 if q is None else q, 2 if niter is None else niter)
    u, s, vh = apply(_SVD, base.mH @ x, False)
    u, v = base @ u, vh.mH
    return (v, s, u) if wide else (u, s, v)


def pca_lowrank(
    A: Any,
    q: int | None = None,
    center: bool = True,
    niter: int = 2,  # noqa: N803
) -> tuple[Any, Any, Any]:
    """Compute principal components of `A`: `svd_lowrank` of `A` less its columns' means."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not (q >= 0 and q <= min(m, n)):  # noqa: PLR1716 - PyTorch's words for other types
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(dim=(-2,), keepdim=True) if center else A, q, niter)
