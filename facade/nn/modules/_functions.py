"""Identity function that tensors of a module with backward hooks pass through."""

from __future__ import annotations

from typing import Any

from ...autograd.function import Function


class BackwardHookFunction(Function):
    """The identity, whose node holds a module's backward hooks."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return the arguments, as views where they require grad."""
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Return the gradients."""
        return args
