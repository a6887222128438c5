"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Size, arange, broadcast_tensors, clamp, finfo, full, int64, multinomial, nan
from . import constraints
from ._families.host_checks import values_of
from ._families.probs import ProbsOrLogits, need_one
from .bernoulli import enumerated
from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """Draw an index by the weights in the last dimension of `probs` or `logits`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if probs is not None else self.logits
        self._num_events = self._param.size()[-1]
        self._data = normalized(probs, logits)
        super().__init__(self._param.size()[:-1], validate_args=validate_args)
        del self._data

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        last = (self._num_events,)
        new = self._expanded_probs(Categorical, batch_shape, _instance, trailing=last)
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Any:
        return full(self._extended_shape(), nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self.mean

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = clamp(self.logits, min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return enumerated(arange(self._num_events, dtype=int64), self._batch_shape, expand)


def normalized(probs: Any, logits: Any) -> Any:
    """The parameter as NumPy knows it before the program runs, None if it does not."""
    x = values_of(logits if probs is None else probs)
    if x is None:
        return None
    with np.errstate(all="ignore"):
        if probs is not None:
            return x / x.sum(-1, keepdims=True)
        return x - np.logaddexp.reduce(x, -1, keepdims=True)
