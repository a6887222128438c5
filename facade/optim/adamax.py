"""PyTorch's `torch.optim.adamax`."""

from ._rules.adamax import Adamax as Adamax

__all__ = ["Adamax"]
