"""PyTorch's `torch.optim.adamw`."""

from ._rules.adam import AdamW as AdamW

__all__ = ["AdamW"]
