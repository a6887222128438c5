"""Views of a new tensor through several view ops: one step where it was seen before."""

from __future__ import annotations

from typing import Any

from ..._core.trie import local
from ..._core.view_ops import Lens
from ..._dispatch.macro_steps import is_uncut
from ..._dispatch.record import apply
from ..._storage.enter import enter
from ..._storage.pending_views import view_of
from ..._tracing.loop_cuts import over_budget


def views_in_one_step(source: Any, lens: Lens) -> Any:
    """Return `source`, a new tensor, seen through several view ops; one step where known."""
    mode, trace = local.mode, local.trace
    if mode.dual or mode.hooks or mode.counted or mode.inference or over_budget(trace):
        return _replay(source, lens)
    fresh = not source._shares and source._v.strides is None and not source._v.inference
    if not fresh or local.vmap is not None or local.settings.view_replay:
        return _replay(source, lens)
    key = ("views", *[(op, args) for op, args, _ in lens], enter(source, trace))
    before = trace.state
    state = before.next.get(key)
    if state is not None and is_uncut(state):
        trace.state = state
        return view_of(source, lens, state, trace)
    out = _replay(source, lens)
    same = out._v.requires_grad is source._v.requires_grad
    if same and out._v is trace.state.value and local.trace is trace:
        before.next[key] = trace.state
    return out


def _replay(source: Any, lens: Lens) -> Any:
    for op, args, kwargs in lens:
        source = apply(op, source, *args, **kwargs)
    return source
