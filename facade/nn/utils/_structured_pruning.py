"""Pruning of whole channels: by chance or by their norm."""

from __future__ import annotations

from typing import Any

from ..._ops.creation.factories import rand, zeros_like
from ._prune_checks import (
    _compute_norm,
    _validate_pruning_amount_init,
    _validate_pruning_dim,
    _validate_structured_pruning,
    count_to_prune,
)
from ._pruning_method import BasePruningMethod


def _keep(t: Any, dim: int, channels: Any, default_mask: Any) -> Any:
    """Return the mask that keeps these channels of what there is."""
    mask = zeros_like(t)
    where: list[Any] = [slice(None)] * t.dim()
    where[dim] = channels
    mask[tuple(where)] = 1
    mask *= default_mask.to(dtype=mask.dtype)
    return mask


class RandomStructured(BasePruningMethod):
    """Prune channels by chance.

    Args:
      amount: a fraction in [0, 1], or how many.
      dim: of the channels.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask with so many channels at 0."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = count_to_prune(self.amount, size)
        if count == 0:
            return default_mask
        drawn = rand(size)
        return _keep(t, self.dim, drawn > drawn.kthvalue(count).values, default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, dim: int = -1
    ) -> Any:
        """Prune a parameter of a module from now on."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prune the channels with the least norm.

    Args:
      amount: a fraction in [0, 1], or how many.
      n: the order of the norm, as `leafax.norm` takes it.
      dim: of the channels.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask with so many channels at 0."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = count_to_prune(self.amount, size)
        norm = _compute_norm(t, self.n, self.dim)
        if count == 0:
            return default_mask
        return _keep(t, self.dim, norm.topk(size - count).indices, default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        """Prune a parameter of a module from now on."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )
