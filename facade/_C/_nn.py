"""`torch._C._nn`: what PyTorch's `nn.functional` calls, which here is `nn.functional` itself."""

from __future__ import annotations

from typing import Any

from .._core.dtypes import device as _device
from .._ops.creation.to import _given as _to_arguments
from ..nn import functional as _functional


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Read the arguments of `Module.to`: the device, the dtype, `non_blocking`, the format."""
    given = _to_arguments(args, kwargs)
    where, dtype = given.get("device"), given.get("dtype")
    if "tensor" in given:
        where, dtype = given["tensor"].device, given["tensor"].dtype
    where = None if where is None else _device(where)
    return where, dtype, bool(given.get("non_blocking", False)), given.get("memory_format")


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(_functional, name):
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
    return getattr(_functional, name)
