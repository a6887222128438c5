"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, exp, log
from .. import poisson as _draw
from .._core.grad_modes import no_grad
from . import constraints
from .distribution import batch_shape_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Draw how many events come in a time that they have the mean `rate` in."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(batch_shape_of(rate, expanded=self.rate), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Poisson, batch_shape, _instance, "rate")

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = Size()) -> Any:  # noqa: B008
        with no_grad():
            return _draw(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (log(self.rate),)

    def _log_normalizer(self, x: Any) -> Any:
        return exp(x)
