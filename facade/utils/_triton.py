"""PyTorch's `torch.utils._triton`: there is no Triton behind a tensor."""

from __future__ import annotations


def has_triton() -> bool:
    """Return False: XLA makes the kernels."""
    return False


has_triton_package = has_triton_tma = has_triton_tma_device = has_triton
