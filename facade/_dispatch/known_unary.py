"""The hit path of ops of one tensor, for functions that are called with little else."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import Op

from .._core.trie import local
from .._tracing.inputs import make
from .known_calls import is_plain_class
from .record import known


def known_of_one(op: Op, t: Any) -> Any:
    """Return what `known` gives for an op, no view, of one tensor alone."""
    if not is_plain_class(type(t)):
        return None
    trace = local.trace
    state = trace.state.next.get((op, t._v))
    if state is None:
        return known(op, (t,))  # it may have to enter
    trace.state = state
    return make(state.value, trace)
