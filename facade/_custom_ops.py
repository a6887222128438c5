"""PyTorch's `torch._custom_ops`, deprecated for `torch.library`: what packages still import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .library import get_ctx as get_ctx
from .library import register_fake as _register_fake

__all__ = ["get_ctx", "impl_abstract"]


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Register what an op's results look like, see `library.register_fake`."""
    return _register_fake(qualname, func)
