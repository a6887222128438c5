"""`torch._C._nn`: what PyTorch's `nn.functional` calls, which here is `nn.functional` itself."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from ..nn import functional

    if name.startswith("_") or not hasattr(functional, name):
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
    return getattr(functional, name)
