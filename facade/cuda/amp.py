"""PyTorch's `torch.cuda.amp`, deprecated for `torch.amp`."""

from .._api.deprecated_amp import autocast_of as _autocast_of
from .._api.deprecated_amp import cuda_bwd as custom_bwd
from .._api.deprecated_amp import cuda_fwd as custom_fwd
from .._api.deprecated_amp import scaler_of as _scaler_of
from .._core.dtypes import float16 as _float16

autocast = _autocast_of("cuda", _float16)
GradScaler = _scaler_of("cuda")

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
