"""PyTorch's `torch.optim.rprop`."""

from ._rules.rprop import Rprop as Rprop

__all__ = ["Rprop"]
