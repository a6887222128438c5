"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, finfo, zeros_like
from .._core.grad_modes import no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._families.probs import ProbsOrLogits, need_one
from ._families.validation import validate_positive
from .distribution import batch_shape_of
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """Draw how many trials fail before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

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
        if self._validate_args and probs is not None:
            validate_positive(self, self.probs, "probs")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded_probs(Geometric, batch_shape, _instance)

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            u = self.probs.new(self._extended_shape(sample_shape))
            u.uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        entropy = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return entropy / self.probs
