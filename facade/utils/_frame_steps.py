"""Steps of a checkpointed call: which are nodes, and what their gradients read."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.program import Node as Entry

from .._autograd.graph.history import external
from .._core.trie import State, Value, local, resting
from .._dispatch.subgraph import Region
from .._rules.reads_of_gradients import needed
from .._rules.saved_columns import saved_places, value_at
from .._storage.autograd_roles import alias, keep_edge


def op_steps(region: Region) -> list[State]:
    """List the steps of a region that record an op."""
    return [s for s in region.steps() if isinstance(s.entry, Entry)]


def tracked_steps(steps: list[State]) -> list[State]:
    """Pick the steps that are nodes of the graph."""
    return [s for s in steps if any(v.requires_grad for v in s.values)]


def bearing_steps(steps: list[State]) -> list[State]:
    """Pick the nodes whose gradient reads anything."""
    return [s for s in tracked_steps(steps) if any(not v.weak for v in read_values(s))]


def read_values(s: State) -> list[Value]:
    """List the values that a step's gradient reads or that PyTorch would save."""
    places = [*[i for _, i in saved_places(s)], *needed(s)]
    return [value_at(s, i) for i in places]


def metadata_of(steps: list[State], fn: Any) -> list[Any]:
    """Describe by `fn` what PyTorch would have saved of these steps."""
    found = []
    for s in tracked_steps(steps):
        for _, place in saved_places(s):
            v = value_at(s, place)
            if not v.weak:
                found.append(fn(v))
    return found


def with_first_edge(value: Value, first: Value, node: Any, i: int) -> Value:
    """Give a recomputed operand the way that gradients took from the first one."""
    trace = local.trace
    if node.trace is trace:
        return keep_edge(trace, value, first)
    edge = node.next_edges()[i]
    if edge is None:
        return value
    if edge[0].accumulates:
        leaf = edge[0].variable
        made = alias(trace, value, resting(value.aval, True, first.role))
        trace.sources[made] = leaf
        return made
    return external(value, edge[0], edge[1])
