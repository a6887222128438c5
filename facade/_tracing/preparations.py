"""Preparations for a graph, which run on their own, op by op.

Data that is prepared in another way each time, such as images that are flipped at random: what it
is prepared for would be compiled anew with it. So where the same line has met new preparations
several times, they run on their own, and what follows is known. And parameters that a script made
before its first step: the step would be compiled with them once and without them again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakSet

from leafax.functional.program.program import Node

from .._core.handle import Handle
from .._core.trie import LEAF, State, Trace, local
from .infer import user_line

REASON = "what it begins with was prepared in a new way"  # of the cut
LEAST = 4  # ops that a preparation has, for a cut to be worth it
PATIENCE = 3  # new preparations that a line meets before they run on their own

_met: Counter[Any] = Counter()
_ends: WeakSet[State] = WeakSet()  # preparations that ran on their own: again, they are no news


def prepared_anew(trace: Trace, op: Any, args: Any) -> bool:
    """Return whether the program so far is a new preparation, and `op` begins the graph."""
    state = trace.state
    if state.nodes < LEAST or state.next or local.cuts.uncut or local.vmap is not None:
        return False
    if not state.mode.grad or not any(isinstance(a, Handle) and a._tracked for a in args):
        return False
    if state in _ends or has_graph(state):
        return False
    site = (op, user_line())
    _met[site] += 1
    if _met[site] <= PATIENCE and not (_met[site] == 1 and _makes_parameters(trace)):
        return False
    _ends.add(state)
    return True


def _makes_parameters(trace: Trace) -> bool:
    """Return whether the program computes a leaf that gradients are wanted of."""
    pending = (t._v for t in trace.living() if t._array is None)
    return any(v.role == LEAF and v.requires_grad for v in pending)


def has_graph(state: State) -> bool:
    """Return whether autograd records any step up to here; mostly the last one tells."""
    at: State | None = state
    while at is not None:
        if isinstance(at.entry, Node) and any(v.requires_grad for v in at.values):
            return True
        at = at.parent
    return False
