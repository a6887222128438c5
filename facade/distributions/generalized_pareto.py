"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

from .. import (
    Size,
    broadcast_to,
    exp,
    expm1,
    inf,
    isclose,
    log,
    log1p,
    nan,
    ones_like,
    rand,
    where,
    zeros_like,
)
from . import constraints
from .distribution import Distribution, batch_shape_of
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Draw how far extremes lie above the threshold `loc`.

    With concentration 0, where the formulas divide by it, it is an exponential distribution.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        batch_shape = batch_shape_of(loc, scale, concentration, expanded=self.loc)
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        names = ("loc", "scale", "concentration")
        return self._expanded(GeneralizedPareto, batch_shape, _instance, *names)

    def rsample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def _safe(self) -> tuple[Any, Any]:
        """Where the concentration is zero, and the concentration with 1 there."""
        zero = isclose(self.concentration, zeros_like(self.concentration))
        return zero, where(zero, ones_like(self.concentration), self.concentration)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, safe = self._safe()
        y = 1 / safe + ones_like(z)
        nonzero = where(y == 0, y, y * log1p(safe * z))
        return -self.scale.log() - where(zero, z, nonzero)

    def log_survival_function(self, value: Any) -> Any:
        """Return the logarithm of the probability of samples above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, safe = self._safe()
        return where(zero, -z, -log1p(safe * z) / safe)

    def log_cdf(self, value: Any) -> Any:
        """Return the logarithm of `cdf`."""
        return log1p(-exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        zero, safe = self._safe()
        log_rest = log1p(-value)
        nonzero = self.loc + self.scale / safe * expm1(-safe * log_rest)
        return where(zero, self.loc - self.scale * log_rest, nonzero)

    @property
    def mean(self) -> Any:
        valid = self.concentration < 1
        result = self.loc + self.scale / (1 - where(valid, self.concentration, 0.5))
        return where(valid, result, nan)

    @property
    def variance(self) -> Any:
        valid = self.concentration < 0.5
        safe = where(valid, self.concentration, 0.25)
        return where(valid, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), nan)

    def entropy(self) -> Any:
        return broadcast_to(log(self.scale) + self.concentration + 1, self._batch_shape)

    @property
    def mode(self) -> Any:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, inf))
