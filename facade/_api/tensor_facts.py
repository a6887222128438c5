"""Functions that answer a question about a tensor by its method."""

from __future__ import annotations

from typing import Any

from .._tensor.tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """Tell whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Any) -> bool:
    """Tell whether a tensor's dtype is floating point."""
    return bool(input.is_floating_point())


def is_signed(input: Any) -> bool:
    """Tell whether a tensor's dtype has negative numbers."""
    return bool(input.is_signed())


def is_complex(input: Any) -> bool:
    """Tell whether a tensor's dtype is complex."""
    return bool(input.is_complex())


def numel(input: Any) -> int:
    """Return the number of elements."""
    return int(input.numel())


def is_inference(input: Any) -> bool:
    """Tell whether a tensor was made in inference mode."""
    return bool(input.is_inference())
