"""PyTorch's `torch.optim.sgd`."""

from ._rules.sgd import SGD as SGD

__all__ = ["SGD"]
