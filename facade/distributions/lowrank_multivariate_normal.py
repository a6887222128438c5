"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, broadcast_tensors, diag_embed, eye, linalg, matmul
from . import constraints
from ._families.matrices import _batch_mahalanobis, _batch_mv
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _identity_like(K: Any) -> Any:  # noqa: N803
    return eye(K.shape[-1], dtype=K.dtype, device=K.device)


def _batch_capacitance_tril(W: Any, D: Any) -> Any:  # noqa: N803
    """The Cholesky factor of `I + W.T D^-1 W`."""
    K = matmul(W.mT / D.unsqueeze(-2), W)  # noqa: N806
    return linalg.cholesky(K + _identity_like(K))


def _batch_lowrank_logdet(W: Any, D: Any, capacitance_tril: Any) -> Any:  # noqa: N803
    """The log determinant of `W W.T + D`, by the matrix determinant lemma."""
    diagonal = capacitance_tril.diagonal(dim1=-2, dim2=-1)
    return 2 * diagonal.log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Any, D: Any, x: Any, capacitance_tril: Any) -> Any:  # noqa: N803
    """`x.T (W W.T + D)^-1 x`, by the Woodbury identity."""
    weighted = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, weighted)


class LowRankMultivariateNormal(Distribution):
    """Draw normal vectors with covariance `cov_factor @ cov_factor.T + diag(cov_diag)`."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            loc_, self.cov_factor, cov_diag_ = broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from e
        self.loc = loc_[..., 0]
        self.cov_diag = cov_diag_[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new.loc = self.loc.expand(shape)
        new.cov_diag = self.cov_diag.expand(shape)
        new.cov_factor = self.cov_factor.expand(shape + self.cov_factor.shape[-1:])
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        return self._begun(new, batch_shape)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def variance(self) -> Any:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        # W W.T + D = D^1/2 (I + D^-1/2 W W.T D^-1/2) D^1/2, whose middle is well conditioned
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        K = matmul(scaled, scaled.mT)  # noqa: N806
        return (root * linalg.cholesky(K + _identity_like(K))).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        W = self._unbroadcasted_cov_factor  # noqa: N806
        covariance = matmul(W, W.mT) + diag_embed(self._unbroadcasted_cov_diag)
        return covariance.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        D = self._unbroadcasted_cov_diag  # noqa: N806
        weighted = self._unbroadcasted_cov_factor.mT / D.unsqueeze(-2)
        A = linalg.solve_triangular(self._capacitance_tril, weighted, upper=False)  # noqa: N806
        return (diag_embed(D.reciprocal()) - A.mT @ A).expand(self._matrix_shape())

    def rsample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        low = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], dtype, device)
        own = _standard_normal(shape, dtype, device)
        shifted = self.loc + _batch_mv(self._unbroadcasted_cov_factor, low)
        return shifted + self._unbroadcasted_cov_diag.sqrt() * own

    def _log_det(self) -> Any:
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag  # noqa: N806
        return _batch_lowrank_logdet(W, D, self._capacitance_tril)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag  # noqa: N806
        M = _batch_lowrank_mahalanobis(W, D, value - self.loc, self._capacitance_tril)  # noqa: N806
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + M)

    def entropy(self) -> Any:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = 0.5 * (constant + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
