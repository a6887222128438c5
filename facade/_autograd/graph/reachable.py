"""The part of the graph that living tensors lead to."""

from __future__ import annotations

from typing import Any

from ..._core.trie import EXTERNAL, NODE, State, Trace, Value


def onward(trace: Trace, edge: Value) -> list[State]:
    """List the states of `trace` that the gradient at an edge goes on to."""
    if edge.role == NODE:
        return [edge.state]
    node = trace.sources[edge]._node if edge in trace.sources else None
    if edge.role != EXTERNAL or node is None or node.trace is not None:
        return []
    return [n[0].state for n in node.next_edges() if n is not None and n[0].trace is trace]


def forget_dead(trace: Trace) -> None:
    """Release nodes that live outside the trace and that no living tensor leads to.

    The trace holds them until it is cut, for it does not know when a tensor dies.
    """
    reached: set[Any] = set()
    seen: set[State] = set()
    stack: list[Any] = [t._stale if t._stale is not None else t._v for t in trace.living()]
    while stack:
        value = stack.pop()
        edge = value.edge
        if edge is None or edge in reached:
            continue
        reached.add(edge)
        for state in onward(trace, edge):
            if state not in seen:
                seen.add(state)
                stack += state.operands
    for value, source in list(trace.sources.items()):
        if value.role == EXTERNAL and value not in reached and source._v is None:
            del trace.sources[value]
