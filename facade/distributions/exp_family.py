"""Exponential families, whose entropy follows from their log-normalizer."""

from __future__ import annotations

from typing import Any

from ..autograd import grad
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Be a distribution with density `exp(<t(x), theta> - F(theta) + k(x))`."""

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """The natural parameters `theta`."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        """`F(theta)`."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of `k(x)`."""
        raise NotImplementedError

    def entropy(self) -> Any:
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        means = grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, mean in zip(natural, means, strict=True):
            result = result - (parameter * mean).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
