"""PyTorch's `torch.optim.adamw`."""

from ._adam import AdamW as AdamW

__all__ = ["AdamW"]
