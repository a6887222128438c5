"""PyTorch's `torch.optim.asgd`."""

from ._rules.asgd import ASGD as ASGD

__all__ = ["ASGD"]
