"""PyTorch's `torch.cpu.amp`, deprecated for `torch.amp`."""

from .._api.deprecated_amp import autocast_of as _autocast_of
from .._api.deprecated_amp import scaler_of as _scaler_of
from .._core.dtypes import bfloat16 as _bfloat16

autocast = _autocast_of("cpu", _bfloat16)
GradScaler = _scaler_of("cpu")

__all__ = ["GradScaler", "autocast"]
