"""PyTorch's `torch.optim.radam`."""

from ._rules.radam import RAdam as RAdam

__all__ = ["RAdam"]
