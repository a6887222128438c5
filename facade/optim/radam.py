"""PyTorch's `torch.optim.radam`."""

from ._radam import RAdam as RAdam

__all__ = ["RAdam"]
