"""PyTorch's `torch.optim.adagrad`."""

from ._adagrad import Adagrad as Adagrad

__all__ = ["Adagrad"]
