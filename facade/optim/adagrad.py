"""PyTorch's `torch.optim.adagrad`."""

from ._rules.adagrad import Adagrad as Adagrad

__all__ = ["Adagrad"]
