"""Helpers of `autograd.graph`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._graph import true_edge
from .._handle import Handle
from .._writes import touch
from ._backward import GradientEdge


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge at which gradients for `tensor` arrive; `autograd.grad` takes it as an input."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(*true_edge(tensor))


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
