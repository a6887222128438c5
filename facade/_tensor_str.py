"""PyTorch's `torch._tensor_str`: how tensors are printed."""

from __future__ import annotations

from typing import Any

from ._tensor import printing
from ._tensor.printing import printoptions as printoptions
from ._tensor.printing import set_printoptions as set_printoptions

__all__ = ["PRINT_OPTS", "_tensor_str", "printoptions", "set_printoptions"]

PRINT_OPTS = printing._options


def _tensor_str(self: Any, indent: int) -> str:
    """Return the numbers of a tensor as its text shows them."""
    text: str = printing._contents(self.detach().numpy(), indent)
    return text
