"""Exits of tensors from a trace, remembered for a loop's next turn.

A cut asks every tensor of the trace whether it is alive, is to be computed, holds history, and
gives it its array and the value that it has at rest. Where none shares memory with another, all of
that follows from their values, and which values are alive is the same at every turn of a loop: a
`Walk` holds it. What is left is one pass to look who is alive, and one to let them leave.
"""

from __future__ import annotations

from typing import Any

from .._autograd.graph import edges
from .._core.trie import EXTERNAL, LEAF, NODE, Trace
from .._storage.shared_storage import unshare


class Walk:
    """The work to do for tensors that hold certain values and share no memory.

    Attributes:
      pending: places of those to compute, and the numbers of their values.
      rested: places of those that hold an array already.
      graph: values whose history somebody holds.
      rests: for each tensor its value at rest; None if it takes a graph node along.
      recipe, outs: of the last run: for each tensor its place among the outputs, or -1.
      keep: what the graph needs, where nothing of it was freed and no node has been made yet.
    """

    __slots__ = ("pending", "numbers", "rested", "graph", "rests", "recipe", "outs", "keep")

    def __init__(self, live: list[Any]) -> None:
        values = [t._v for t in live]
        computed = [t._array is None for t in live]
        self.pending = tuple([i for i, new in enumerate(computed) if new])
        self.numbers = tuple([values[i].index for i in self.pending])
        self.rested = tuple([i for i, new in enumerate(computed) if not new])
        self.graph = tuple([v for v in values if v.role == NODE])
        self.rests = tuple([v.resting if v.role <= LEAF else None for v in values])
        self.recipe: Any = None
        self.outs: tuple[int, ...] = ()
        self.keep: Any = None

    def outs_of(self, recipe: Any, live: list[Any]) -> tuple[int, ...]:
        """Return for each tensor its place among a recipe's outputs, or -1."""
        if self.recipe is not recipe:
            outs = [-1] * len(live)
            for i, number in zip(self.pending, self.numbers, strict=True):
                outs[i] = recipe.places[number]
            self.recipe, self.outs = recipe, tuple(outs)
        return self.outs


def known(trace: Trace, live: list[Any]) -> Walk | None:
    """Return the remembered walk of these tensors, if there is one and it fits."""
    walks = trace.state.walks
    if walks is None or trace.memory.viewed:
        return None
    walk: Walk | None = walks.get(tuple([t._v for t in live]))
    if walk is not None:
        for i in walk.rested:
            if live[i]._array is None:
                return None
    return walk


def remember(trace: Trace, live: list[Any]) -> None:
    """Remember the walk of these tensors, if they are as plain as that takes."""
    if trace.memory.viewed or any(t._shares or t._stale is not None for t in live):
        return
    if any(t._array is None and t._v.index < 0 for t in live):
        return
    if trace.state.walks is None:
        trace.state.walks = {}
    trace.state.walks[tuple([t._v for t in live])] = Walk(live)


def leave(trace: Trace, t: Any) -> None:
    """Take a live tensor out of the trace, with the array and history it has."""
    value = t._v
    if value.role <= LEAF and not t._shares and t._array is not None:
        t._v, t._trace = value.resting, None  # most: data, parameters, results without history
        return
    value = t._stale if t._stale is not None else value
    if value.role == NODE and t._node is None:
        t._node, t._out = edges.node_on_leaving(trace, value), value.edge.out
    elif value.role == EXTERNAL and t._node is None:
        t._node, t._out = edges.edge_of(trace, value)
    if t._stale is not None:
        t._stale = value.resting
    t._v = t._v.resting
    t._trace = None  # its node is known, and what a Function saved must not hold the trace
    if t._shares and t._store is not None and not t._lens:
        unshare(t)
