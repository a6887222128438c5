"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, abs, expm1, ge, gt, le, log, log1p, ones_like, rand, where, zeros_like
from .. import pow as _pow
from .._core.grad_modes import no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._families.probs import ProbsOrLogits, need_one
from .distribution import batch_shape_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Draw from [0, 1] with density proportional to `probs**x * (1 - probs)**(1 - x)`.

    Between the two `lims`, where the formulas divide by almost zero, Taylor's series are used.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        need_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            # Clamped values would always pass.
            if validate_args is not None:
                if not self.arg_constraints["probs"].check(self.probs).all():
                    raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        self._lims = lims
        batch_shape = batch_shape_of(probs, logits, expanded=self._param)
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded_probs(ContinuousBernoulli, batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Any:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Any:
        return le(self.probs, self._lims[0]) | gt(self.probs, self._lims[1])

    def _cut_probs(self) -> Any:
        safe = self._lims[0] * ones_like(self.probs)
        return where(self._outside_unstable_region(), self.probs, safe)

    def _cont_bern_log_norm(self) -> Any:
        """The logarithm of the normalizing constant."""
        p = self._cut_probs()
        below = where(le(p, 0.5), p, zeros_like(p))
        above = where(ge(p, 0.5), p, ones_like(p))
        log_norm = log(abs(log1p(-p) - log(p))) - where(
            le(p, 0.5), log1p(-2.0 * below), log(2.0 * above - 1.0)
        )
        x = _pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Any:
        p = self._cut_probs()
        means = p / (2.0 * p - 1.0) + 1.0 / (log1p(-p) - log(p))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * _pow(x, 2)) * x
        return where(self._outside_unstable_region(), means, taylor)

    @property
    def variance(self) -> Any:
        p = self._cut_probs()
        variances = p * (p - 1.0) / _pow(1.0 - 2.0 * p, 2) + 1.0 / _pow(log1p(-p) - log(p), 2)
        x = _pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return where(self._outside_unstable_region(), variances, taylor)

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_prob = -binary_cross_entropy_with_logits(logits, value, reduction="none")
        return log_prob + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        cdfs = (_pow(p, value) * _pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = where(self._outside_unstable_region(), cdfs, value)
        inside = where(ge(value, 1.0), ones_like(value), inside)
        return where(le(value, 0.0), zeros_like(value), inside)

    def icdf(self, value: Any) -> Any:
        p = self._cut_probs()
        quantiles = (log1p(-p + value * (2.0 * p - 1.0)) - log1p(-p)) / (log(p) - log1p(-p))
        return where(self._outside_unstable_region(), quantiles, value)

    def entropy(self) -> Any:
        log_probs0, log_probs1 = log1p(-self.probs), log(self.probs)
        return self.mean * (log_probs0 - log_probs1) - self._cont_bern_log_norm() - log_probs0

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        stable = le(x, low) | gt(x, high)
        cut = where(stable, x, low * ones_like(x))
        log_norm = log(abs(expm1(cut))) - log(abs(cut))
        taylor = 0.5 * x + _pow(x, 2) / 24.0 - _pow(x, 4) / 2880.0
        return where(stable, log_norm, taylor)
