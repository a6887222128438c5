"""Paths through the trie that are one step once they were walked.

A backward pass records hundreds of ops, an update of parameters enters hundreds of states. Which
these are follows from the trie and the operands' values; so where the same was recorded before on
the same values, the state that the last op led to is known, and nothing in between need be walked.
A step over an op costs a microsecond, and ten when the computation of a training step has just
swept the caches. Calls of functions are such steps too, see `known_calls.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core.locks import running, sharing
from .._core.trie import State, Trace, Value, local
from .._tracing.inputs import put


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
