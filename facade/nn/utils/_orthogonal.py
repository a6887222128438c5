"""Orthogonal matrices as functions of matrices without constraint."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from leafax.functional.program.op import TABLE

from ... import linalg
from ..._core.grad_modes import no_grad
from ..._core.number_limits import finfo
from ..._ops.calls.functions import function
from ..._ops.creation.factories import eye, randn, zeros_like
from ..modules.module import Module

cat = function(TABLE["cat"])


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _identity_like(x: Any, size: int) -> Any:
    return eye(size, dtype=x.dtype, device=x.device)


def _is_orthogonal(q: Any) -> bool:
    n, k = q.shape[-2:]
    eps = 10.0 * n * finfo(q.dtype).eps
    return bool((q.mH @ q).allclose(_identity_like(q, k).expand(*q.shape[:-2], k, k), atol=eps))


def _make_orthogonal(a: Any) -> Any:
    """Return the factor Q of `a` whose R has a positive diagonal."""
    x, tau = a.geqrf()
    q = linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Compute an orthogonal matrix of any matrix of its shape.

    Args:
      weight: the tensor that is parametrized.
      orthogonal_map: how.
      use_trivialization: multiply by `base`, the matrix that was there.
    """

    base: Any

    def __init__(
        self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        """Compute the orthogonal matrix."""
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        n, k = X.shape[-2:]
        if self.orthogonal_map == _OrthMaps.householder:
            A = X.tril(-1)
            tau = 2.0 / (1.0 + (A * A).sum(-2))
            Q = linalg.householder_product(A, tau)
            # Its diagonal says the signs and is not trained: integers have no gradient.
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
            A = X - X.mH
            if self.orthogonal_map == _OrthMaps.matrix_exp:
                Q = A.matrix_exp()
            else:
                one = _identity_like(A, n)
                Q = linalg.solve(one.add(A, alpha=-0.5), one.add(A, alpha=0.5))
            if n != k:
                Q = Q[..., :k]
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """Return what `Q` is computed from; an orthogonal matrix near it if it is none."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        given = Q
        wide = Q.size(-2) < Q.size(-1)
        if wide:
            Q = Q.mT
        if not hasattr(self, "base"):
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential "
                    "or the Cayley parametrizations when use_trivialization=False."
                )
            A, tau = Q.geqrf()
            diagonal = A.diagonal(dim1=-2, dim2=-1)
            # Where `tau` is 0 there is no reflection, so the sign is the other one.
            diagonal.copy_(diagonal.sign().where(tau != 0.0, -diagonal.sign()))
            return A.mT if wide else A
        n, k = Q.shape[-2:]
        if n != k:
            more = randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(cat([Q, more], dim=-1))
        elif _is_orthogonal(Q):
            Q = Q.clone()
        else:
            Q = _make_orthogonal(Q)
        self.base = Q
        made = zeros_like(given)
        made.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # of Householder's the signs: the identity
        return made
