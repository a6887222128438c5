"""Paths through the trie that are one step once they were walked.

PyTorch composes `matmul` and `linear` of ops, whose nodes the graph has here as well; a backward
pass records hundreds. Which ops those are follows from the operands' values; so where the same was
recorded before on the same values, the state that its last op led to is known, and nothing in
between need be walked. A step over an op costs a microsecond, and ten when the computation of a
training step has just swept the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .._core.handle import Handle, tensors_in
from .._core.locks import running, sharing
from .._core.trie import State, Trace, Value, local
from .._storage.enter import enter_all
from .._tracing.inputs import make, put, rests
from .._tracing.loop_cuts import over_budget

_VALUE = attrgetter("_v")


class MacroStep(NamedTuple):
    """A path that was walked before.

    Attributes:
      state: the state after it.
      inputs: `(place, value)` of the operands that enter the trace on the way, parameters most
        often, in their order; an array that enters as it is has no value.
      nbytes: what these weigh.
      effects: what the walk did beside the trie, as the caller does it again.
      freed: states of the graph that it freed.
      reads: states whose saved tensors it reads: it fails if these were freed before.
    """

    state: State
    inputs: tuple[tuple[int, Value | None], ...] = ()
    nbytes: int = 0
    effects: Any = None
    freed: frozenset[State] = frozenset()
    reads: frozenset[State] = frozenset()

    def take(self, trace: Trace, operands: Sequence[Any]) -> bool:
        """Enter the operands and go to the state; return False if one of them is not at rest."""
        with sharing:
            if running:
                return False
            entered = trace.entered
            for i, value in self.inputs:  # `rests`, without a call for each
                if value is None:
                    continue
                t = operands[i]
                if t._trace is not None or t._shares or t._array is None or id(t) in entered:
                    return False
                if t._v is not value.resting:  # another thread has changed it just now
                    return False
            for i, value in self.inputs:
                if value is None:
                    trace.arrays.append(operands[i])
                else:
                    put(operands[i], value, trace)
        trace.nbytes += self.nbytes
        trace.state = self.state
        return True


def is_uncut(state: State) -> bool:
    """Tell whether a program that goes on to `state` is not cut on the way, for its length."""
    return not local.budget or state.nodes <= local.budget


def in_known_step(key: Any, record: Callable[[], Any], operands: Any) -> Any:
    """Return the tensor that `record()` gives, in one step where its state is known.

    Args:
      key: of the step; the values of the operands, which are in the trace, are part of it.
      operands: tensors among tuples, lists and dicts.
    """
    trace = local.trace
    before, inputs = trace.state, len(trace.arrays)
    state = before.next.get(key)
    if state is not None and is_uncut(state):
        trace.state = state
        return make(state.value, trace)
    out = record()
    # A number may have become an input: it differs from call to call.
    if not isinstance(out, Handle) or local.trace is not trace or len(trace.arrays) != inputs:
        return out
    if out._v is trace.state.value and not out._shares and out._vc is None:
        if not any(t._stale is not None for t in tensors_in(operands)):
            before.next[key] = trace.state
    return out


def in_one_step(name: Any, composed: Callable[..., Any], *operands: Any) -> Any:
    """Return `composed(*operands)`, in one step where it is known.

    Args:
      name: of the function in the trie: its op, and what else there is but operands.
      composed: records its ops; what it records depends on the operands' values alone.
    """
    trace = local.trace
    if not local.mode.plain or over_budget(trace):
        return composed(*operands)
    start = trace.state
    first = (name, *map(_VALUE, operands))
    step = start.next.get(first)
    if type(step) is MacroStep:
        if is_uncut(step.state) and step.take(trace, operands):
            return make(step.state.value, trace)
    elif step is not None and is_uncut(step):
        trace.state = step
        return make(step.value, trace)
    new = [t for t in operands if t._v.index < 0]
    plain = all(rests(t, trace) for t in new)
    key = (name, *enter_all(operands, trace))
    before = trace.state
    out = in_known_step(key, lambda: composed(*operands), operands)
    state = before.next.get(key)
    if state is None or state is not trace.state or not plain or not new:
        return out
    if len({v for v in first if type(v) is Value and v.index < 0}) == len(new):
        # Of two that are alike, one could be both.
        entered = [(i, v) for i, v in enumerate(key[1:]) if first[1 + i].index < 0]
        nbytes = sum(v.nbytes for _, v in entered)
        start.next[first] = MacroStep(state, tuple(entered), nbytes)
    return out
