"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, abs, arange, binomial, exp, lgamma, log1p
from .._core.grad_modes import no_grad
from . import constraints
from ._families.probs import ProbsOrLogits, need_one
from .bernoulli import enumerated
from .utils import broadcast_all

__all__ = ["Binomial"]


def _clamp_by_zero(x: Any) -> Any:
    # `clamp(min=0)`, with gradient 0.5 at 0
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ProbsOrLogits):
    """Draw how many of `total_count` trials succeed."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None,
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
        return self._expanded_probs(Binomial, batch_shape, _instance, "total_count")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        # log(1 - probs) of large logits would be -inf: n * log(1 + exp(logits)) instead.
        normalizer = n * _clamp_by_zero(logits) + n * log1p(exp(-abs(logits))) - lgamma(n + 1)
        return value * logits - lgamma(value + 1) - lgamma(n - value + 1) - normalizer

    def _one_count(self, asked: str) -> int:
        total_count = int(self.total_count.max())
        if not self.total_count.min() == total_count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asked}`.")
        return total_count

    def entropy(self) -> Any:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(1 + self._one_count("enumerate_support"), dtype=self._param.dtype)
        return enumerated(values, self._batch_shape, expand)
