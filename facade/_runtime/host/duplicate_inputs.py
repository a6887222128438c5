"""Tensors that are gathered from many places: a replay buffer, a data set of single examples.

A tensor is one input of a program however often it is used, so a batch in which two of the
gathered tensors are the same one would be another program than a batch in which they are not, and
a loop over random samples would compile at almost every step. What is gathered is copied in any
case: a tensor at rest that is in the program already is taken as a further input. So is a view
from an earlier program, `torch.tensor(obs).unsqueeze(0)`: which of the gathered tensors are
views, and which of them view the same tensor, is as random as what was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.handle import Handle
from ..._core.host_transfer import placed
from ..._core.trie import Trace, local
from ..._dispatch.record import apply
from ..._tracing.inputs import from_array
from ..observation import observe


def apart(tensors: Sequence[Any]) -> Sequence[Any]:
    """Give each tensor at rest that needs no gradient an input of its own."""
    mode, trace = local.mode, local.trace
    if mode.dual or mode.hooks or mode.counted or local.vmap is not None:
        return tensors
    found: list[Any] = []
    seen: set[int] = set()
    changed = False
    old = sum(isinstance(t, Handle) and t._trace is not trace for t in tensors)
    for t in tensors:
        if not isinstance(t, Handle):
            pass
        elif t._shares and (t._trace is not trace or 2 * old >= len(tensors)) and _is_view(t):
            t, changed = from_array(_of_view(t)), True
        elif _is_at_rest(t):
            if id(t) in seen or _is_input(t, trace):
                t, changed = _again(t), True
            seen.add(id(t))
        found.append(t)
    return found if changed else tensors


def _is_at_rest(t: Any) -> bool:
    return t._array is not None and not t._shares and _is_plain(t)


def _is_plain(t: Any) -> bool:
    value = t._v
    return not (value.requires_grad or value.inference) and value.strides is None


def _is_view(t: Any) -> bool:
    """Return whether `t` is a view of a tensor at rest.

    Views that this program made count only among older tensors.
    """
    if not _is_plain(t) or t._stale is not None or t._duals is not None:
        return False
    source, lens = _seen(t)
    return bool(lens) and source._array is not None and not (local.cuts.uncut or local.opaque)


def _seen(t: Any) -> tuple[Any, Any]:
    """Return the tensor that `t` is read from, and the lens."""
    if t._viewed is None:
        return (None, None) if t._store is None else (t._store.cell, t._lens)
    return t._viewed  # type: ignore[no-any-return]


def _of_view(t: Any) -> Any:
    """Return the array of a view, and keep it for the next time."""
    if t._array is not None:
        return placed(t)
    source, lens = _seen(t)
    running, local.trace = local.trace, Trace(local.root(local.mode))
    try:  # in a program of its own: the running one goes on
        made = from_array(placed(source))
        for op, args, kwargs in lens:
            made = apply(op, made, *args, **kwargs)
        array = observe(made, "a view that is gathered")
    finally:
        local.trace = running
    if t._trace is not running:
        t._array = array
    return array


def _is_input(t: Any, trace: Trace) -> bool:
    return t._trace is trace and t._v.index >= 0


def _again(t: Any) -> Any:
    """Make another tensor on the array of `t`."""
    return from_array(placed(t))
