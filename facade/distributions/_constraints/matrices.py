"""Regions of matrices: triangular, symmetric and positive ones."""

from __future__ import annotations

from typing import Any

from ... import bool as _bool
from ... import finfo, full, isclose, linalg
from .constraint import Constraint


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        diagonal = value.diagonal(dim1=-2, dim2=-1)
        return (value.tril() == value).all(-1).all(-1) & (diagonal > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        # A row's norm is off by rounding, which grows with its length.
        tol = finfo(value.dtype).eps * value.size(-1) * 10
        norms = linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & (norms - 1.0).abs().le(tol).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        fits = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], fits, dtype=_bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & linalg.cholesky_ex(value).info.eq(0)
