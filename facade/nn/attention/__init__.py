"""PyTorch's `torch.nn.attention`: which kernels may compute attention; XLA chooses its own."""

from __future__ import annotations

import typing as _typing

from ..._core import missing_names as _missing_names
from ...backends._attention_kernels import SDPBackend as SDPBackend
from ...backends._attention_kernels import (
    _cur_sdpa_kernel_backends as _cur_sdpa_kernel_backends,
)
from ...backends._attention_kernels import sdpa_kernel as sdpa_kernel
from . import bias as bias

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False

if _typing.TYPE_CHECKING:
    from . import flex_attention as flex_attention
_LATER = ("flex_attention",)
__getattr__ = _missing_names.missing("leafax.nn.attention", lambda name: None, _LATER)
__dir__ = _missing_names.listing("leafax.nn.attention", _LATER)
