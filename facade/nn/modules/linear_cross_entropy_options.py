"""PyTorch's `torch.nn.modules.linear_cross_entropy_options`."""

from .._functional.linear_cross_entropy import (
    LinearCrossEntropyOptions as LinearCrossEntropyOptions,
)

__all__ = ["LinearCrossEntropyOptions"]
