"""Exits of tensors from a trace that has run, with the arrays and the history that they have."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from .._autograd.graph.saved_residuals import save_residuals
from .._core.trie import Trace, local
from .._tracing.inputs import Source
from .recipes import Recipe
from .remembered_exits import Walk, leave

_TRACE = attrgetter("_trace")


def renew(trace: Trace) -> None:
    """Give the thread a new, empty trace; `trace` is done, but its tensors still wait."""
    trace.outcome.done = True
    if local.trace is trace:
        local.trace = Trace(local.root(local.mode))


def hand_out(
    trace: Trace, recipe: Recipe, outcome: Any, live: list[Any], walk: Walk | None, pending: Any
) -> None:
    """Give the tensors their arrays and what later gradients need of the graph."""
    outputs, places = outcome.outputs, recipe.places
    if trace.memory.bundles:
        for bundle in trace.memory.bundles:
            bundle.leave(outputs, places)
        trace.memory.bundles = ()
    if walk is not None:
        outs = walk.outs_of(recipe, live)
        for i in walk.pending if walk.sharing else ():  # before one takes its storage's data over
            if live[i]._trace is trace:
                live[i]._array = outputs[outs[i]]
        for t, k, rest in zip(live, outs, walk.rests, strict=True):
            if t._trace is not trace:  # another thread took it
                continue
            if k >= 0:
                t._array = outputs[k]
            if rest is None:
                leave(trace, t)
            else:
                t._v = rest
                t._trace = None
        _clear(trace)
        return
    for t in pending:
        if t._trace is trace and (place := places.get(t._v.index)) is not None:
            t._array = outputs[place]  # else another thread gave it a value meanwhile
    if recipe.saves:
        if {*map(_TRACE, live)} != {trace}:
            # The numbers of what another thread took are those of its trace.
            live = [t for t in live if t._trace is trace]
        save_residuals(trace, recipe, outcome, live)
    leave_all(trace, live)


def leave_all(trace: Trace, live: list[Any]) -> None:
    """Take the live tensors out of the trace, with the arrays and history they have."""
    if not trace.outcome.done:
        renew(trace)
    for t in live:
        if t._trace is trace:  # else another thread took it
            leave(trace, t)
    _clear(trace)


def _clear(trace: Trace) -> None:
    """Drop what a trace that has run holds."""
    trace.refs.clear()
    trace.entered.clear()
    trace.arrays = []
    trace.memory.undo.clear()
    trace.outcome.peeked = None
    trace.graph.let_go_of_nodes()
    if trace.graph.hooked:
        _nodes_leave(trace)


def _nodes_leave(trace: Trace) -> None:
    """Detach from the trace the nodes that its sources lead to; the trace holds these nodes."""
    roots = [s._node for s in trace.sources.values() if type(s) is Source]
    stack = [n for n in roots if n.trace is trace]
    stack += [e[0] for n in roots if n.trace is None for e in n.next_edges() if e is not None]
    while stack:
        node = stack.pop()
        if node.trace is trace:
            node.leave()
            stack += [e[0] for e in node.next_edges() if e is not None]
