"""PyTorch's `torch.optim.nadam`."""

from ._rules.nadam import NAdam as NAdam

__all__ = ["NAdam"]
