"""Transforms from unconstrained space to a constraint.

`biject_to(constraint)` is a bijection, with a Jacobian; `transform_to(constraint)` need not be one,
and may have more parameters, which optimizers find easier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .utils import Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Map classes of constraints to functions that make their transform."""

    def __init__(self) -> None:
        self._registry: dict[Any, Callable[[Any], Any]] = {}
        super().__init__()

    def register(
        self, constraint: Any, factory: Callable[[Any], Any] | None = None
    ) -> Callable[[Any], Any]:
        """Register what makes the transform of a class of constraints; also a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(constraint: Any, factory: Callable[[Any], Any]) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _above(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and low == 0 and isinstance(high, Number) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


_both(constraints.real, lambda constraint: transforms.identity_transform)
# As in PyTorch, these two are classes of constraints with a bound, which are registered below.
_both(constraints.positive, lambda constraint: transforms.ExpTransform())
_both(constraints.nonnegative, lambda constraint: transforms.ExpTransform())
_both(constraints.greater_than, _above)
_both(constraints.greater_than_eq, _above)
_both(constraints.less_than, _below)
_both(constraints.interval, _between)
_both(constraints.half_open_interval, _between)
_both(constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform()
)
for _definite in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_definite, lambda constraint: transforms.PositiveDefiniteTransform())


def _register_composites(registry: ConstraintRegistry) -> None:
    """Register constraints that are made of others, whose transforms the same registry knows."""

    @registry.register(constraints.independent)
    def _independent(constraint: Any) -> Any:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def _cat(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.StackTransform(parts, constraint.dim)


_register_composites(biject_to)
_register_composites(transform_to)
