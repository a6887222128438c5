"""PyTorch's `torch.optim.asgd`."""

from ._asgd import ASGD as ASGD

__all__ = ["ASGD"]
