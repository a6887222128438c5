"""`torch._C._nn`: what PyTorch's `nn.functional` calls, which here is `nn.functional` itself."""

from __future__ import annotations

from typing import Any

from ..nn import functional as _functional


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(_functional, name):
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
    return getattr(_functional, name)
