"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, exp, lgamma, poisson, sigmoid
from .._core.grad_modes import no_grad
from ..nn.functional import logsigmoid
from . import constraints
from ._families.probs import ProbsOrLogits, need_one
from .gamma import Gamma
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """Draw how many trials succeed before `total_count` have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        need_one(probs, logits)
        if probs is not None:
            total_count, self.probs = broadcast_all(total_count, probs)
        else:
            total_count, self.logits = broadcast_all(total_count, logits)
        self._param = self.probs if probs is not None else self.logits
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded_probs(NegativeBinomial, batch_shape, _instance, "total_count")

    @property
    def mean(self) -> Any:
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        # Total count zero is allowed here.
        rate = exp(-self.logits)
        return Gamma(concentration=self.total_count, rate=rate, validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            return poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        unnormalized = n * logsigmoid(-logits) + value * logsigmoid(logits)
        normalizer = -lgamma(n + value) + lgamma(1.0 + value) + lgamma(n)
        # None of 0 failures: the two infinities are of the same size.
        return unnormalized - normalizer.masked_fill(n + value == 0.0, 0.0)
