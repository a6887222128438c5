"""Common parts of losses: reductions, deprecated arguments and the broadcasting warning."""

from __future__ import annotations

import warnings
from typing import Any

from .._ops.composites.joins import broadcast_tensors


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """`reduction`, or what the deprecated `size_average` and `reduce` ask for."""
    if size_average is None and reduce is None:
        return reduction
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else "mean" if size_average else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.",
        stacklevel=3,
    )
    return name


def check_reduction(reduction: str) -> str:
    """`reduction` if PyTorch knows it."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=3,
        )
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: Any, reduction: str) -> Any:
    """Return the mean or the sum of a loss, or the loss."""
    reduction = check_reduction(reduction)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def expanded(input: Any, target: Any) -> tuple[Any, Any]:
    """Broadcast both to their common shape; warns where they differ, which is rarely meant."""
    if target.size() == input.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size "
        f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    return broadcast_tensors(input, target)  # type: ignore[return-value]


def weighted(loss: Any, weight: Any, input: Any, reduction: str, mean: Any) -> Any:
    """Weigh a loss with one weight an element; `mean` computes the mean of weighted losses."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        return mean(loss)
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
