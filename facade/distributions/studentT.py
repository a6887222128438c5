"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, digamma, inf, lgamma, log1p, nan, rsqrt, where
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Draw a normal number over the root of a chi-squared one divided by its `df`."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(StudentT, batch_shape, _instance, "df", "loc", "scale")
        new._chi2 = self._chi2.expand(new.batch_shape)
        return new

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.df > 2
        df = where(finite, self.df, 3.0)  # whatever it is, no gradient flows there
        variance = self.scale.pow(2) * df / (df - 2)
        return where(finite, variance, variance.new_full((), inf).masked_fill(self.df <= 1, nan))

    def rsample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        drawn = noise * rsqrt(self._chi2.rsample(sample_shape) / self.df)
        return self.loc + self.scale * drawn

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + lgamma(0.5 * self.df)
            - lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        lbeta = lgamma(half) + math.lgamma(0.5) - lgamma(more)
        return (
            self.scale.log() + more * (digamma(more) - digamma(half)) + 0.5 * self.df.log() + lbeta
        )
