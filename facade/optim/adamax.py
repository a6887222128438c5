"""PyTorch's `torch.optim.adamax`."""

from ._adamax import Adamax as Adamax

__all__ = ["Adamax"]
