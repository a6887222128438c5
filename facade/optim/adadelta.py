"""PyTorch's `torch.optim.adadelta`."""

from ._adadelta import Adadelta as Adadelta

__all__ = ["Adadelta"]
