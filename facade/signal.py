"""PyTorch's `torch.signal`."""

from . import _windows as windows

__all__ = ["windows"]
