"""PyTorch's `torch.optim.adam`."""

from ._rules.adam import Adam as Adam

__all__ = ["Adam"]
