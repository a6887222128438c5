"""A linear layer and cross entropy in one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from .cross_entropy import cross_entropy
from .linear import linear

_POLICIES = ("accurate", "balanced", "compact", "auto")


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's hints for computing `linear_cross_entropy` in chunks of the batch.

    They trade memory for time and change no value. Here the compiled program decides how much of
    the logits exists at a time, so they are checked and have no other effect.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            raise ValueError(
                f"batch_chunk_size must be None or a positive int, got {self.batch_chunk_size!r}"
            )
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"acc_policy must be one of {_POLICIES}, got {self.acc_policy!r}")


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Any:  # fmt: skip
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    Args:
      input: `(in_features,)` or `(N, in_features)`.
      linear_weight: `(C, in_features)`, or `(C, d1, ..., in_features)` for a loss at each place.
      target: class indices `(N, d1, ...)`, or probabilities in the logits' shape.
      linear_bias: `linear_weight` without its last dim, or None.
      weight, reduction, ignore_index, label_smoothing: those of `cross_entropy`.
      options: see `LinearCrossEntropyOptions`.
    """
    shape = _logits_shape(input, linear_weight, linear_bias)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    rows = prod(linear_weight.shape[:-1])
    if linear_weight.dim() > 2:
        linear_weight = linear_weight.reshape((rows, linear_weight.shape[-1]))
        linear_bias = None if linear_bias is None else linear_bias.reshape((rows,))
    logits = linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index,
    )  # fmt: skip


def _logits_shape(input: Any, weight: Any, bias: Any) -> tuple[int, ...]:
    if input.dim() < 1 or input.dim() > 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    features = input.shape[-1]
    if features != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {weight.shape[-1]}, respectively"
        )
    if bias is not None and tuple(bias.shape) != tuple(weight.shape[:-1]):
        raise RuntimeError(
            f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}"
        )
    if weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    return (*input.shape[:-1], *weight.shape[:-1])
