"""PyTorch's `torch.optim.nadam`."""

from ._nadam import NAdam as NAdam

__all__ = ["NAdam"]
