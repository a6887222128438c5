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

from leafax.functional import Op

from ._enter import enter, make
from ._record import over_budget
from ._trace import State, local


def in_one_step(op: Op, composed: Callable[..., Any], *operands: Any) -> Any:
    """`composed(*operands)`, in one step where it is known.

    Args:
      op: names the function in the trie.
      composed: records its ops; what it records depends on the operands' values alone.
    """
    mode, trace = local.mode, local.trace
    if mode.dual or mode.hooks or mode.counted or mode.autocast is not None or over_budget(trace):
        return composed(*operands)
    key = (op, *[enter(x, trace) for x in operands])
    before = trace.state
    state = before.next.get(key)
    if state is not None and _uncut(state):
        trace.state = state
        return make(state.value, trace)
    out = composed(*operands)
    plain = out._v is trace.state.value and not out._shares and out._vc is None
    if plain and local.trace is trace and all(x._stale is None for x in operands):
        before.next[key] = trace.state
    return out


def _uncut(state: State) -> bool:
    """Whether a program that goes on to `state` is not cut on the way, for its length."""
    return not local.budget or state.nodes <= local.budget
