"""Helpers of `autograd.graph`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._autograd.backward_arguments import GradientEdge
from .._autograd.graph.edges import true_edge
from .._core.grad_modes import within
from .._core.handle import Handle
from .._core.trie import Mode, local
from .._storage.write import touch
from ._context import FunctionCtx


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge at which gradients for `tensor` arrive, an input of `autograd.grad`."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    node, out = true_edge(tensor)
    if not isinstance(node, FunctionCtx):
        return GradientEdge(node, out)
    with within(Mode.of(True, local.mode.inference, local.mode.autocast)):
        token = tensor.view_as(tensor).grad_fn  # PyTorch's nodes of Functions own no graph
    return GradientEdge(node, out, token)


def increment_version(tensor: Any | Iterable[Any]) -> None:
    """Count a write that autograd did not see."""
    if not isinstance(tensor, (Handle, Iterable)):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in (tensor,) if isinstance(tensor, Handle) else tensor:
        if not isinstance(t, Handle):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor"
            )
        touch(t)
