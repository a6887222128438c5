"""PyTorch's `torch.nn.attention`: which kernels may compute attention; XLA chooses its own."""

from __future__ import annotations

from ...backends._attention_kernels import SDPBackend as SDPBackend
from ...backends._attention_kernels import (
    _cur_sdpa_kernel_backends as _cur_sdpa_kernel_backends,
)
from ...backends._attention_kernels import sdpa_kernel as sdpa_kernel
from . import bias as bias
from . import flex_attention as flex_attention

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False
