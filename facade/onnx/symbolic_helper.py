"""PyTorch's `torch.onnx.symbolic_helper`: decorators of functions that write ONNX's nodes."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import leave


def parse_args(*arg_descriptors: Any) -> Any:
    """Return a decorator that returns its function: nobody calls it."""
    return leave()


def quantized_args(*arg_q_descriptors: bool, **options: Any) -> Any:
    """Return a decorator that returns its function: nobody calls it."""
    return leave()
