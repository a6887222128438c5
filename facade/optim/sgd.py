"""PyTorch's `torch.optim.sgd`."""

from ._sgd import SGD as SGD

__all__ = ["SGD"]
