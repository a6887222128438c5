"""Plan of a cut: what a program must return so that a later `backward()` can go on.

Each node that somebody can still reach gets its edges and the arrays that its gradient reads.
What an earlier backward has freed is not kept, but for numbers that became inputs of the program:
nodes that save nothing can be walked again, and an index is a constant to PyTorch.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from leafax.functional.program.meta import META

from ..._core.trie import NODE, State, Trace, Value
from ..._rules.reads_of_gradients import needed, wanted_of
from ..._rules.saved_columns import active_saves, saved_places


class ResidualPlan(NamedTuple):
    """List what the run of a program returns for later backwards."""

    states: tuple[State, ...]
    values: tuple[Value, ...]
    residuals: tuple[tuple[State, tuple[int, ...]], ...]
    read: tuple[frozenset[int], ...]  # by each state's gradient, among its operands


def residual_plan(trace: Trace, live: Sequence[Value]) -> ResidualPlan | None:
    """Find what the graph's live part needs to be differentiated after a cut; None for nothing."""
    edges = [v.edge for v in live if v.role == NODE and v.edge is not None]
    stack: list[State] = [edge.state for edge in edges if _stays(edge.state, trace)]
    if trace.graph.grad_fns:
        held = _held_nodes(trace.graph.grad_fns)
        stack += [node.state for node in held if not node.is_freed()]
    if not stack:
        return None
    seen: set[State] = set()
    while stack:
        state = stack.pop()
        if state in seen or not _stays(state, trace):
            continue
        seen.add(state)
        stack += _states_before(state)
    states = tuple(sorted(seen, key=lambda s: s.depth))
    values: dict[Value, None] = {}
    residuals = []
    read: list[frozenset[int]] = []
    frames = trace.graph.frames or {}
    for state in states:
        if state in frames:  # checkpointed: nothing is kept
            read.append(frozenset())
            continue
        read.append(needed(state))
        for i in read[-1]:
            values[state.operands[i]] = None
        for name, index in saved_places(state):
            if index < 0:
                values[state.values[-1 - index]] = None
            elif name:
                values[state.operands[index]] = None
        if state.call.residuals and state.values[0].device is not META:
            residuals.append((state, wanted_of(state)))
    return ResidualPlan(states, tuple(values), tuple(residuals), tuple(read))


def _held_nodes(grad_fns: dict[State, Any]) -> list[Any]:
    """List the nodes that something else holds than the trace and the nodes that lead to them.

    Which nodes there are depends on what was walked and what was remembered.
    """
    edges = Counter(
        id(edge[0]) for node in grad_fns.values() for edge in node._edges or () if edge is not None
    )
    nodes, references = _referred(grad_fns)
    times = zip(nodes, references, strict=True)
    return [node for node, n in times if n - edges[id(node)] > _UNHELD]


def _referred(grad_fns: dict[State, Any]) -> tuple[list[Any], list[int]]:
    """Return the nodes of a trace, and how many references there are to each."""
    nodes = list(grad_fns.values())
    return nodes, list(map(sys.getrefcount, nodes))


def _unheld() -> int:
    return _referred({None: object()})[1][0]  # type: ignore[dict-item]


#: How many references there are to a node that nothing but its trace holds.
_UNHELD = _unheld()


def _states_before(state: State) -> list[State]:
    """List the states that a state's gradients go on to."""
    edges = [v.edge for v in state.operands if v.requires_grad and v.edge is not None]
    return [edge.state for edge in edges if edge.role == NODE]


def _stays(state: State, trace: Trace) -> bool:
    return state not in trace.graph.freed or _reads_number(state)


def _reads_number(state: State) -> bool:
    """Tell whether a freed state, or what leads to it, can be walked and reads a number then."""
    if state.again is None:
        state.again = any(
            not active_saves(at) and any(v.weak for v in at.operands) and needed(at)
            for at in _walkable_states(state)
        )
    return state.again


def _walkable_states(state: State) -> Iterator[State]:
    """Yield a state and what leads to it, not beyond nodes that cannot be walked once freed."""
    seen, stack = {state}, [state]
    while stack:
        at = stack.pop()
        yield at
        if not active_saves(at):
            new = [s for s in _states_before(at) if s not in seen]
            seen.update(new)
            stack += new
