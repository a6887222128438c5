"""Exits of tensors from a trace, remembered for a loop's next turn.

A cut asks every tensor of the trace whether it is alive, is to be computed, holds history, and
gives it its array and the value that it has at rest. All of that follows from their values, and
which values are alive is the same at every turn of a loop: a `Walk` holds it. What is left is one
pass to look who is alive, and one to let them leave. Those few that share memory with another are
looked at one by one.
"""

from __future__ import annotations

from collections.abc import Set
from operator import attrgetter
from typing import Any

from .._autograd.graph import edges
from .._core.trie import EXTERNAL, LEAF, NODE, Trace
from .._storage.pending_views import is_unsettled
from .._storage.shared_storage import unshare

_VALUE, _SHARES = attrgetter("_v"), attrgetter("_shares")


class Walk:
    """The work to do for tensors that hold certain values.

    Args:
      wanted: ids of those that are computed also where they share memory with another.

    Attributes:
      pending: places of those to compute, and the numbers of their values.
      rested: places of those that hold an array already.
      shares: for each tensor whether it shares memory, and `sharing`: the places of those that do.
      graph: values whose history somebody holds.
      rests: for each tensor its value at rest; None if it takes a graph node along.
      recipe, outs: of the last run: for each tensor its place among the outputs, or -1.
      keep: what the graph needs, where nothing of it was freed and no node has been made yet.
    """

    __slots__ = (
        "pending", "numbers", "rested", "shares", "sharing", "graph", "rests", "recipe", "outs",
        "keep",
    )  # fmt: skip

    def __init__(self, live: list[Any], wanted: Set[int]) -> None:
        values = list(map(_VALUE, live))
        self.shares = tuple(map(_SHARES, live))
        self.sharing = tuple([i for i, shares in enumerate(self.shares) if shares])
        self.pending = tuple([i for i, t in enumerate(live) if is_computed(t, wanted)])
        self.numbers = tuple([values[i].index for i in self.pending])
        self.rested = tuple([i for i, t in enumerate(live) if t._array is not None])
        self.graph = tuple([v for v in values if v.role == NODE])
        plain = [v.resting if v.role <= LEAF else None for v in values]
        rests = zip(plain, self.shares, strict=True)
        self.rests = tuple([None if shares else rest for rest, shares in rests])
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


def is_pending(t: Any) -> bool:
    """Tell whether a tensor whose views are settled is to be computed, and not read from others."""
    if t._array is not None or t._v.index < 0:
        return False
    return not t._shares or t._store is None or t is t._store.cell


def is_computed(t: Any, wanted: Set[int]) -> bool:
    """Tell whether a tensor is pending, or a view that is to be computed as well.

    Args:
      wanted: ids of such views.
    """
    return is_pending(t) or id(t) in wanted and t._array is None and t._v.index >= 0


def known(trace: Trace, live: list[Any], wanted: Set[int]) -> Walk | None:
    """Return the remembered walk of these tensors, if there is one and it fits.

    Args:
      wanted: ids of those that are computed also where they share memory with another.
    """
    walks = trace.state.walks
    walk: Walk | None = None if walks is None else walks.get(tuple(map(_VALUE, live)))
    if walk is None:
        return None
    if trace.memory.viewed or walk.sharing:
        if tuple(map(_SHARES, live)) != walk.shares:
            return None
        for i in walk.sharing:
            t = live[i]
            if not _is_plain(t) or is_computed(t, wanted) is not (i in walk.pending):
                return None
    for i in walk.rested:
        if live[i]._array is None:
            return None
    return walk


def remember(trace: Trace, live: list[Any], wanted: Set[int]) -> None:
    """Remember the walk of these tensors, if they are as plain as that takes."""
    if not all(_is_plain(t) if t._shares else t._stale is None for t in live):
        return
    if any(t._array is None and t._v.index < 0 for t in live):
        return
    if trace.state.walks is None:
        trace.state.walks = {}
    trace.state.walks[tuple(map(_VALUE, live))] = Walk(live, wanted)


def _is_plain(t: Any) -> bool:
    """Tell whether all that is asked of a tensor that shares memory follows from its value."""
    return not is_unsettled(t) and t._stale is None


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
