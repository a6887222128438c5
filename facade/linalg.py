"""PyTorch's `torch.linalg`: linear algebra on batches of matrices."""

from __future__ import annotations

from ._table import in_namespace as _in_namespace

_made = _in_namespace("linalg")
globals().update(_made)
_lu = _made["lu"]


def lu(A: object, *, pivot: bool = True) -> object:  # noqa: N803
    """Permutation (without gradient), lower and upper triangular factors."""
    made = _lu(A, pivot=pivot)
    return type(made)(made.P.detach(), made.L, made.U)


_lstsq = _made["lstsq"]


def lstsq(A: object, B: object, rcond: object = None, *, driver: str | None = None) -> object:  # noqa: N803
    """The least squares solution, residuals, rank and singular values (without gradient)."""
    made = _lstsq(A, B, rcond, driver=driver)
    return type(made)(*made[:3], made[3].detach())


__all__ = list(_made)
