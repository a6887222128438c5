"""PyTorch's `torch.optim.adam`."""

from ._adam import Adam as Adam

__all__ = ["Adam"]
