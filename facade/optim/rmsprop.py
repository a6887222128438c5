"""PyTorch's `torch.optim.rmsprop`."""

from ._rules.rmsprop import RMSprop as RMSprop

__all__ = ["RMSprop"]
