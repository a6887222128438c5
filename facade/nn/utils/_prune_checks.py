"""Checks and counts of what is pruned, and how much."""

from __future__ import annotations

import numbers
from typing import Any


def _validate_pruning_amount_init(amount: Any) -> None:
    """Refuse what is neither a number of units nor a fraction."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    counted = isinstance(amount, numbers.Integral)
    if (counted and amount < 0) or (not counted and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Refuse to prune more units than there are."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:  # type: ignore[operator]
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _validate_structured_pruning(t: Any) -> None:
    """Refuse a tensor that has no channels."""
    if len(t.shape) <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {len(t.shape)} dims"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> Any:
    """Return how many of `tensor_size` units an amount is."""
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Any, dim: int) -> None:
    """Refuse a dim that the tensor does not have."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Any, n: Any, dim: int) -> Any:
    """Return the norm of each slice along `dim`."""
    dims = list(range(t.dim()))
    dims.remove(dims[dim] if dim < 0 else dim)
    return t.norm(p=n, dim=dims)


def count_to_prune(amount: Any, size: int) -> Any:
    """Return how many of `size` units an amount is.

    Raises:
      ValueError: it is more than there are.
    """
    count = _compute_nparams_toprune(amount, size)
    _validate_pruning_amount(count, size)
    return count
