"""Distributions that are given either probabilities or logits."""

from __future__ import annotations

from typing import Any

from ... import Size
from ..distribution import Distribution
from ..utils import lazy_property, logits_to_probs, probs_to_logits


def need_one(probs: Any, logits: Any) -> None:
    """Raise unless just one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits(Distribution):
    """Hold `probs` or `logits`, and compute the other one when it is asked for.

    Attributes:
      probs, logits: the two, in the shape of the batch.
      _param: the one that was given.
    """

    _param: Any

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    def _expanded_probs(
        self, cls: type, batch_shape: Any, instance: Any, *names: str, trailing: Any = ()
    ) -> Any:
        names = ("probs", "logits", *names)
        new = self._expanded(cls, batch_shape, instance, *names, trailing=trailing)
        new._param = new.__dict__["probs" if "probs" in new.__dict__ else "logits"]
        return new
