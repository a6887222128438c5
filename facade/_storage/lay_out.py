"""The strides that a new tensor, whose memory nobody has seen yet, gets."""

from __future__ import annotations

from typing import Any

from .._core.trie import local, resting
from .._rules.strides.layouts import copied
from .autograd_roles import spread
from .strides import layout


def lay_out_as(like: Any, made: Any) -> Any:
    """Lay a new tensor of the shape of `like` out in memory as that is, without gaps."""
    return lay_out(made, copied(layout(like)))


def lay_out(made: Any, strides: tuple[int, ...] | None) -> Any:
    """Lay a new tensor out in memory with these strides, and return it."""
    v = made._v
    if v.index < 0:
        made._v = resting(v.aval, v.requires_grad, v.role, v.inference, strides)
    elif strides is not None:
        made._v = spread(local.trace, v, strides)
    return made
