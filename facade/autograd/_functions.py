"""PyTorch's `torch.autograd._functions`: Functions of its own that old code calls."""

from __future__ import annotations

import math
from typing import Any

from ._function import Function


class Resize(Function):
    """Copy a tensor into another shape of as many elements: `Resize.apply(x, sizes)`."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: tuple[int, ...]) -> Any:
        ctx.sizes, ctx.numel, ctx.input_sizes = sizes, math.prod(sizes), tensor.size()
        if tensor.numel() != ctx.numel:
            raise RuntimeError(
                f"requested resize to {_by_x(sizes)} ({ctx.numel} elements in total), but the "
                f"given tensor has a size of {_by_x(tensor.size())} ({tensor.numel()} elements). "
                "autograd's resize can only change the shape of a given tensor, while preserving "
                "the number of elements. "
            )
        return tensor.clone().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.contiguous().view(ctx.input_sizes), None


def _by_x(sizes: Any) -> str:
    return "x".join(map(str, sizes))
