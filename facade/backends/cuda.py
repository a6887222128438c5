"""`torch.backends.cuda`: what PyTorch programs set for a GPU's products and attention."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any

from ._attention_kernels import SDPBackend as _SDPBackend
from ._attention_kernels import sdpa_kernel as _sdpa_kernel
from ._cublas import cuBLASModule as cuBLASModule
from ._libraries import preferred_blas_library as preferred_blas_library
from ._libraries import preferred_linalg_library as preferred_linalg_library
from ._switches import Switches

matmul = cuBLASModule()
_sdp = Switches(flash=True, mem_efficient=True, math=True, cudnn=True, reduced=False)


def is_built() -> bool:
    """Return False: JAX says whether there is a GPU (`leafax.cuda.is_available()`)."""
    return False


def is_flash_attention_available() -> bool:
    """Return False: XLA has no kernel of that name."""
    return False


def flash_sdp_enabled() -> bool:
    """Tell whether attention may use the kernel."""
    return bool(_sdp.__dict__["flash"])


def enable_flash_sdp(enabled: bool) -> None:
    """Remember whether attention may use the kernel; XLA chooses by itself."""
    _sdp.__dict__["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Tell whether attention may use the kernel."""
    return bool(_sdp.__dict__["mem_efficient"])


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Remember whether attention may use the kernel; XLA chooses by itself."""
    _sdp.__dict__["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """Tell whether attention may use the kernel."""
    return bool(_sdp.__dict__["math"])


def enable_math_sdp(enabled: bool) -> None:
    """Remember whether attention may use the kernel; XLA chooses by itself."""
    _sdp.__dict__["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Tell whether attention may use the kernel."""
    return bool(_sdp.__dict__["cudnn"])


def enable_cudnn_sdp(enabled: bool) -> None:
    """Remember whether attention may use the kernel; XLA chooses by itself."""
    _sdp.__dict__["cudnn"] = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Tell whether attention may sum in half precision."""
    return bool(_sdp.__dict__["reduced"])


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Remember whether attention may sum in half precision; it never does."""
    _sdp.__dict__["reduced"] = enabled


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> AbstractContextManager[Any]:  # fmt: skip
    """Allow attention only some kernels within a block."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
        "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
        "manager, with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    chosen = {
        _SDPBackend.FLASH_ATTENTION: enable_flash,
        _SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        _SDPBackend.MATH: enable_math,
        _SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return _sdpa_kernel([kernel for kernel, allowed in chosen.items() if allowed])
