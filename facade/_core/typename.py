"""Names of objects' types, as messages give them."""

from __future__ import annotations

from typing import Any

from .dtypes import dtype as dtype_class
from .handle import Handle


def typename(obj: Any) -> str:
    """Return `obj.type()` of a tensor; else the name of a type, class or function."""
    t: Any = obj
    if isinstance(obj, Handle):
        return str(t.type())
    if isinstance(obj, dtype_class):
        return "torch.dtype"
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    module = getattr(named, "__module__", "") or ""
    name = getattr(named, "__qualname__", None) or named.__name__
    return name if module in ("", "builtins") else f"{module}.{name}"
