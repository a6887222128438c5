"""Functions composed of several ops that are one step in the trie once it has seen them.

PyTorch composes `matmul` and `linear` of ops, whose nodes the graph has here as well. Which ops
those are follows from the operands' values; so where a function was recorded before on the same
values, the state that its last op led to is known, and nothing in between need be walked. A step
over an op costs a microsecond, and ten when the computation of a training step has just swept
the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._enter import enter, make
from ._lens import Lens
from ._record import apply, over_budget
from ._trace import State, local
from ._views import view_of


def in_one_step(name: Any, composed: Callable[..., Any], *operands: Any) -> Any:
    """`composed(*operands)`, in one step where it is known.

    Args:
      name: of the function in the trie: its op, and what else there is but operands.
      composed: records its ops; what it records depends on the operands' values alone.
    """
    trace = local.trace
    if not local.mode.plain or over_budget(trace):
        return composed(*operands)
    key = (name, *[enter(x, trace) for x in operands])
    before, inputs = trace.state, len(trace.arrays)
    state = before.next.get(key)
    if state is not None and uncut(state):
        trace.state = state
        return make(state.value, trace)
    out = composed(*operands)
    plain = out._v is trace.state.value and not out._shares and out._vc is None
    if len(trace.arrays) != inputs:  # a number has become an input: it differs from call to call
        return out
    if plain and local.trace is trace and all(x._stale is None for x in operands):
        before.next[key] = trace.state
    return out


def views_in_one_step(source: Any, lens: Lens) -> Any:
    """`source`, a new tensor, seen through view ops one after another; one step where known."""
    mode, trace = local.mode, local.trace
    if mode.dual or mode.hooks or mode.counted or mode.inference or over_budget(trace):
        return _replay(source, lens)
    fresh = not source._shares and source._v.strides is None and not source._v.inference
    if not fresh or local.look is not None or local.view_replay:
        return _replay(source, lens)
    key = ("views", *[(op, args) for op, args, _ in lens], enter(source, trace))
    before = trace.state
    state = before.next.get(key)
    if state is not None and uncut(state):
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


def uncut(state: State) -> bool:
    """Whether a program that goes on to `state` is not cut on the way, for its length."""
    return not local.budget or state.nodes <= local.budget
