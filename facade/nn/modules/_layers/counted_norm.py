"""The batch norm of a layer in training, which counts its batches."""

from __future__ import annotations

from typing import Any

from ...._core.handle import Handle
from ...._core.overrides.state import is_looked_for
from ... import functional as F
from ..._functional.norms import batch_norm, counted_batch_norm


def count_and_norm(
    input: Any, count: Any, mean: Any, variance: Any, weight: Any, bias: Any, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """Count a batch, and standardize it by `F.batch_norm`; as one step unless somebody looks."""
    if isinstance(input, Handle) and F.batch_norm is batch_norm and not is_looked_for():
        return counted_batch_norm(input, count, mean, variance, weight, bias, momentum, eps)
    count.add_(1)
    return F.batch_norm(input, mean, variance, weight, bias, True, momentum, eps)
