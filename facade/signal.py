"""PyTorch's `torch.signal`."""

from ._ops.creation import signal_windows as windows

__all__ = ["windows"]
