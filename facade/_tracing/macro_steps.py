"""Functions composed of several ops that are one step in the trie once it has seen them.

PyTorch composes `matmul` and `linear` of ops, whose nodes the graph has here as well. Which ops
those are follows from the operands' values; so where a function was recorded before on the same
values, the state that its last op led to is known, and nothing in between need be walked. A step
over an op costs a microsecond, and ten when the computation of a training step has just swept
the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._core.locks import running, sharing
from .._core.trie import State, Trace, Value, local
from .._core.view_ops import Lens
from .._storage.pending_views import view_of
from .inputs import enter, enter_all, make, put, rests
from .record import apply, over_budget


class EnteringStep(NamedTuple):
    """A step for which some of the operands, parameters most often, enter the trace first.

    Attributes:
      state: the state after it.
      inputs: for each operand that enters, its place among the operands and its value.
      nbytes: what these weigh.
    """

    state: State
    inputs: tuple[tuple[int, Value], ...]
    nbytes: int

    def take(self, trace: Trace, operands: tuple[Any, ...]) -> bool:
        """Let the operands enter; False if one of them is not at rest."""
        with sharing:
            if running:
                return False
            entered = trace.entered
            for i, value in self.inputs:  # `rests`, without a call for each
                t = operands[i]
                if t._trace is not None or t._shares or t._array is None or id(t) in entered:
                    return False
                if t._v is not value.resting:  # another thread has changed it just now
                    return False
            for i, value in self.inputs:
                put(operands[i], value, trace)
        trace.nbytes += self.nbytes
        trace.state = self.state
        return True


def in_one_step(name: Any, composed: Callable[..., Any], *operands: Any) -> Any:
    """`composed(*operands)`, in one step where it is known.

    Args:
      name: of the function in the trie: its op, and what else there is but operands.
      composed: records its ops; what it records depends on the operands' values alone.
    """
    trace = local.trace
    if not local.mode.plain or over_budget(trace):
        return composed(*operands)
    start = trace.state
    first = (name, *[t._v for t in operands])
    state = start.next.get(first)
    if state is not None and uncut(state):
        trace.state = state
        return make(state.value, trace)
    entering = start.next.get((EnteringStep, first))
    if entering is not None and uncut(entering.state) and entering.take(trace, operands):
        return make(entering.state.value, trace)
    new = [t for t in operands if t._v.index < 0]
    plain = all(rests(t, trace) for t in new)
    key = (name, *enter_all(operands, trace))
    before, inputs = trace.state, len(trace.arrays)
    state = before.next.get(key)
    if state is not None and uncut(state):
        trace.state = state
        out = make(state.value, trace)
    else:
        out = composed(*operands)
        made = out._v is trace.state.value and not out._shares and out._vc is None
        if len(trace.arrays) != inputs:  # a number has become an input, another at each call
            return out
        if not made or local.trace is not trace or any(x._stale is not None for x in operands):
            return out
        state = before.next[key] = trace.state
    if plain and new and len({v for v in first if type(v) is Value and v.index < 0}) == len(new):
        # Of two that are alike, one could be both.
        entered = [(i, v) for i, v in enumerate(key[1:]) if first[1 + i].index < 0]
        nbytes = sum(v.nbytes for _, v in entered)
        start.next[EnteringStep, first] = EnteringStep(state, tuple(entered), nbytes)
    return out


def views_in_one_step(source: Any, lens: Lens) -> Any:
    """`source`, a new tensor, seen through view ops one after another; one step where known."""
    mode, trace = local.mode, local.trace
    if mode.dual or mode.hooks or mode.counted or mode.inference or over_budget(trace):
        return _replay(source, lens)
    fresh = not source._shares and source._v.strides is None and not source._v.inference
    if not fresh or local.vmap is not None or local.view_replay:
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
