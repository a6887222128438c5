"""PyTorch's `torch.optim.rmsprop`."""

from ._rmsprop import RMSprop as RMSprop

__all__ = ["RMSprop"]
