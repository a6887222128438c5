"""Constants that were recorded and are about to be written to, or joined to data on the host.

`x = zeros(n)` is recorded, for most programs use it as it is. Once a script fills it number by
number, it lies on the host as if it had been made there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.numpy.evaluator import evaluator
from leafax.functional.program.op import TABLE
from leafax.functional.program.program import Input, Node

from .._core.locks import sharing
from .._core.trie import NOWHERE, State, local
from .rule import is_free, is_plain

_OPS = frozenset({TABLE[name] for name in ("zeros", "ones", "full", "arange", "eye", "linspace")})
_MOST_STEPS = 512  # recorded since
_MOST_BYTES = 1 << 28  # of zeros, which take memory only where they are written to


def is_pending_constant(t: Any) -> bool:
    """Return whether `t` is a constant of the running trace that nothing was done with."""
    value = t._v
    if value.index < 0 or value.role != NOWHERE or t._shares or t._array is not None:
        return False
    state = value.state
    entry = None if state is None else state.entry
    if type(entry) is not Node or getattr(entry.call, "op", None) not in _OPS:
        return False
    if entry.inputs and not _takes_its_number(state):
        return False
    if state.value is not value or t._trace is not local.trace or value.inference:
        return False
    if not is_plain(t) or not is_free() or value.nbytes > _MOST_BYTES:
        return False
    return not _is_used(value)


def put_constant_at_rest(t: Any) -> bool:
    """Put a tensor that is pending as a constant at rest on the host; return whether it was one."""
    if not is_pending_constant(t):
        return False
    value, trace = t._v, local.trace
    state = value.state
    numbers = (_number_of(state),) if state.operands else ()
    array = _array_of(state.entry.call, value, *numbers)
    if array is None:
        return False
    with sharing:
        if t._trace is not trace or t._v is not value or t._shares:
            return False
        if trace.state is state and state.parent is not None:  # as if it had not been recorded
            trace.state = state.parent
            if numbers and state.parent.parent is not None:
                trace.state = state.parent.parent
                trace.nbytes -= state.parent.value.nbytes
                trace.arrays.pop()
        t._v, t._trace, t._array = value.resting, None, array
    return True


def _takes_its_number(state: State) -> bool:
    """Return whether the step before is the input of the number that `full` fills with."""
    before = state.parent
    if before is None or type(before.entry) is not Input:
        return False
    return before.value.weak and state.operands == (before.value,)


def _number_of(state: State) -> Any:
    """Return the number that the step before made an input, of a state that led to the trace's."""
    since = local.trace.state.since(state)
    return local.trace.arrays[-1 - sum(type(s.entry) is Input for s in since)]


def _is_used(value: Any) -> bool:
    """Return whether a step since then takes the value; a graph may have saved it."""
    state: State | None = local.trace.state
    steps = 0
    while state is not value.state:
        if state is None or value in state.operands or steps > _MOST_STEPS:
            return True
        state, steps = state.parent, steps + 1
    return False


def _array_of(call: Any, value: Any, *numbers: float) -> np.ndarray | None:
    if call.op.name in ("zeros", "ones"):
        make = np.zeros if call.op.name == "zeros" else np.ones
        return make(tuple(value.shape), value.dtype)
    found = _evaluator(call, *map(type, numbers))
    return None if found is None else found(*numbers)[0]


@lru_cache(64)
def _evaluator(call: Any, *kinds: type) -> Any:
    with jax.enable_x64(True):
        return evaluator(call.evaluate, [kind() for kind in kinds], False)
