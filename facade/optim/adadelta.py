"""PyTorch's `torch.optim.adadelta`."""

from ._rules.adadelta import Adadelta as Adadelta

__all__ = ["Adadelta"]
