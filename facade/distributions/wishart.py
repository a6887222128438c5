"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import (
    Size,
    arange,
    broadcast_shapes,
    cholesky_solve,
    digamma,
    eye,
    finfo,
    linalg,
    mvlgamma,
    nan,
    randn,
    tensor,
    where,
)
from . import constraints
from ._families.by_matrix import ByMatrix
from ._families.host_checks import values_of
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .utils import Number, lazy_property

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of `mvlgamma`."""
    known = values_of(x)
    if known is not None and not (known > (p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return digamma(x.unsqueeze(-1) - arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


def _clamp_above_eps(x: Any) -> Any:
    return x.clamp(min=finfo(x.dtype).eps)


class Wishart(ByMatrix, ExponentialFamily):
    """Draw sums of outer products of `df` normal vectors with the covariance given.

    A sample that is numerically singular is drawn again, up to three times, where `df` is so low
    that this is likely; PyTorch looks at every sample for that, which would cut the program.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        matrices = {
            "scale_tril": scale_tril,
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }
        given = [matrix for matrix in matrices.values() if matrix is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        (param,) = given
        if param.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        batch_shape: Any
        if isinstance(df, Number):
            batch_shape = Size(param.shape[:-2])
            self.df = tensor(df, dtype=param.dtype, device=param.device)
        else:
            batch_shape = broadcast_shapes(param.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = param.shape[-2:]
        known = values_of(self.df if isinstance(df, Number) else df)
        self._may_be_singular = known is None or bool(np.any(known < event_shape[-1]))
        if known is not None and np.any(known <= event_shape[-1] - 1):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        self._hold(batch_shape, matrices)
        if known is not None and self._may_be_singular:
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._factor(matrices)
        self._dist_chi2 = self._chi2_of(self)

    def _chi2_of(self, new: Any) -> Chi2:
        """The law of the squares of the diagonal of Bartlett's factor."""
        factor, p = new._unbroadcasted_scale_tril, self._event_shape[-1]
        falling = arange(p, dtype=factor.dtype, device=factor.device)
        return Chi2(df=new.df.unsqueeze(-1) - falling.expand(new.df.shape + (p,)))

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        new._may_be_singular = self._may_be_singular
        self._expand_matrices(new, shape)
        new._dist_chi2 = self._chi2_of(new)
        return self._begun(new, batch_shape)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> Any:
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        identity = eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return cholesky_solve(identity, factor).expand(self._matrix_shape())

    def _df(self) -> Any:
        """The degrees of freedom, in the dimensions of matrices."""
        return self.df.expand(self._batch_shape)[..., None, None]

    @property
    def mean(self) -> Any:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self._df() - self.covariance_matrix.shape[-1] - 1
        return factor.masked_fill(factor <= 0, nan) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        V = self.covariance_matrix  # noqa: N806
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._df() * (V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        diagonal = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed()
        shape = Size(sample_shape) + self._dist_chi2.batch_shape + self._event_shape[-1:]
        noise = randn(shape, dtype=diagonal.dtype, device=diagonal.device)
        chol = self._unbroadcasted_scale_tril @ (diagonal + noise.tril(-1))
        return chol @ chol.mT

    def rsample(  # type: ignore[override]
        self, sample_shape: Any = Size(), max_try_correction: int | None = None,  # noqa: B008
    ) -> Any:  # fmt: skip
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        tries = 3 if max_try_correction is None else max_try_correction
        for _ in range(tries if self._may_be_singular else 0):
            sound = self.support.check(sample)[..., None, None]
            sample = where(sound, sample, self._bartlett_sampling(sample_shape))
        return sample

    def _half_log_det(self) -> Any:
        p = self._event_shape[-1]
        return p * _log_2 / 2 + self._log_diagonal()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        whitened = cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * self._half_log_det()
            - mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
            - whitened.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * self._half_log_det()
            + mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        shifted = y + (p + 1) / 2
        log_det = -linalg.slogdet(-2 * x).logabsdet + _log_2 * p
        return shifted * log_det + mvlgamma(shifted, p=p)
