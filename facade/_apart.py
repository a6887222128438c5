"""Tensors that are gathered from many places: a replay buffer, a data set of single examples.

A tensor is one input of a program however often it is used, so a batch in which two of the
gathered tensors are the same one would be another program than a batch in which they are not, and
a loop over random samples would compile at almost every step. What is gathered is copied in any
case: a tensor at rest that is in the program already is taken as a further input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._enter import from_array
from ._handle import Handle
from ._host import placed
from ._trace import Trace, local


def apart(tensors: Sequence[Any]) -> Sequence[Any]:
    """The same tensors, each an input of its own where it is at rest and needs no gradient."""
    mode, trace = local.mode, local.trace
    if mode.dual or mode.hooks or mode.counted or local.look is not None:
        return tensors
    found: list[Any] = []
    seen: set[int] = set()
    changed = False
    for t in tensors:
        if isinstance(t, Handle) and _is_at_rest(t):
            if id(t) in seen or _is_input(t, trace):
                t, changed = _again(t), True
            seen.add(id(t))
        found.append(t)
    return found if changed else tensors


def _is_at_rest(t: Any) -> bool:
    value = t._v
    return (
        t._array is not None
        and not (t._shares or value.requires_grad or value.inference)
        and value.strides is None
    )


def _is_input(t: Any, trace: Trace) -> bool:
    return t._trace is trace and t._v.index >= 0


def _again(t: Any) -> Any:
    """Another tensor on the array of `t`."""
    return from_array(placed(t))
