"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from .. import digamma, lgamma, where, xlogy
from .._ops.calls.functions import function
from ..nn.functional import one_hot
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]

_dirichlet_grad = function(TABLE["_dirichlet_grad"])
_sample_dirichlet = function(TABLE["_sample_dirichlet"])


def _Dirichlet_backward(x: Any, concentration: Any, grad_output: Any) -> Any:  # noqa: N802
    """The gradient of draws `x` by their concentrations."""
    total = concentration.sum(-1, True).expand_as(concentration)
    moved = _dirichlet_grad(x, concentration, total)
    return moved * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Draw probabilities that sum to 1."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        event = self.event_shape
        return self._expanded(Dirichlet, batch_shape, _instance, "concentration", trailing=event)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            xlogy(self.concentration - 1.0, value).sum(-1)
            + lgamma(self.concentration.sum(-1))
            - lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # Below 1 the density is unbounded in every corner, and one of them is taken.
        corner = one_hot(mode.argmax(dim=-1), above.shape[-1]).to(mode)
        return where((self.concentration < 1).all(dim=-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            lgamma(self.concentration).sum(-1)
            - lgamma(total)
            - (k - total) * digamma(total)
            - ((self.concentration - 1.0) * digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - lgamma(x.sum(-1))
