"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, arange, bernoulli, exp, log1p, logit, nan
from .._core.grad_modes import no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._families.probs import ProbsOrLogits, need_one
from .distribution import batch_shape_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """Draw 1 with probability `probs` (or the sigmoid of `logits`), else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        batch_shape = batch_shape_of(probs, logits, expanded=self._param)
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded_probs(Bernoulli, batch_shape, _instance)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, nan)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        return enumerated(arange(2, dtype=self._param.dtype), self._batch_shape, expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return log1p(exp(x))


def enumerated(values: Any, batch_shape: Any, expand: bool) -> Any:
    """Values along the first dimension, before the batch."""
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1,) + tuple(batch_shape)) if expand else values
