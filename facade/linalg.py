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


__all__ = list(_made)
