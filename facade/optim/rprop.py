"""PyTorch's `torch.optim.rprop`."""

from ._rprop import Rprop as Rprop

__all__ = ["Rprop"]
