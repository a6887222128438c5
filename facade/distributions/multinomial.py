"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, exp, inf, lgamma, ones_like, tensor
from . import constraints
from ._families.of_categorical import OfCategorical
from .binomial import Binomial
from .categorical import Categorical
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OfCategorical):
    """Draw how often each category comes among `total_count` draws."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        self._begin(validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded_categorical(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        new._binomial = Binomial(self.total_count, probs=new.probs, validate_args=False)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        drawn = drawn.movedim(0, -1)
        counts = drawn.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, drawn, ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Any:
        n = tensor(self.total_count)
        own = n * self._categorical.entropy() - lgamma(n + 1)
        support = self._binomial.enumerate_support(expand=False)[1:]
        counted = exp(self._binomial.log_prob(support)) * lgamma(support + 1)
        return own + counted.sum([0, -1])

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -inf), 0)
        ways = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)
