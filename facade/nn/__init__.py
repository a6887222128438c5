"""PyTorch's `torch.nn`."""

from . import functional as functional
