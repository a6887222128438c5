"""Distributions that hold a categorical one, whose categories are their event."""

from __future__ import annotations

from typing import Any

from ... import Size
from .. import constraints
from ..categorical import Categorical
from ..distribution import Distribution


class OfCategorical(Distribution):
    """Have the probabilities and logits of a categorical distribution.

    Attributes:
      _categorical: that distribution.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def _begin(self, validate_args: bool | None) -> None:
        """Take the shapes of the categorical distribution."""
        held = self._categorical
        Distribution.__init__(self, held.batch_shape, held.param_shape[-1:], validate_args)

    def _expanded_categorical(self, cls: type, batch_shape: Any, instance: Any) -> Any:
        new = self._get_checked_instance(cls, instance)
        batch_shape = Size(batch_shape)
        new._categorical = self._categorical.expand(batch_shape)
        return self._begun(new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def probs(self) -> Any:
        """The probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape
