"""Templates of calls: what one computes and the graph that it leaves, whatever its arrays hold.

A template is made of what a call records on a trace of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from leafax.functional.execution.known_ops import SingleOp, single_op
from leafax.functional.execution.single_ops import run_node
from leafax.functional.lowering.lower import is_checked
from leafax.functional.program.op import Op
from leafax.functional.program.program import Call, Input
from leafax.functional.program.program import Node as ProgramNode

from ..._core.trie import EXTERNAL, LEAF, NODE, State, Value
from ..._rules.node_names import node_name
from ..._rules.reads_of_gradients import needed
from ..._rules.saved_columns import saved_places
from ..graph.edges import node_class

MOST = 1 << 14  # elements of an array
DTYPES = frozenset(map(np.dtype, ("bool", "u1", "i4", "i8", "f4", "f8")))
needs_xla: set[Op] = set()  # ops that NumPy does not compute, or not their gradients
FLOATS = frozenset({np.dtype("f4"), np.dtype("f8")})


def run_small(node: ProgramNode, op: SingleOp, arrays: Sequence[Any], base: Op) -> Any:
    """Run a node alone and return its outputs; note if NumPy did not compute it.

    Args:
      base: the op that it computes, or the gradient of.
    """
    new = op.run is None
    found = run_node(node, op, arrays)
    if new and type(found[0]) is not np.ndarray:
        needs_xla.add(base)
    return found


class Step(NamedTuple):
    """One op of a call.

    Attributes:
      node, op: what is computed.
      checked: only the data tell whether it may be.
      first: number of its first result.
    """

    node: ProgramNode
    op: SingleOp
    checked: bool
    first: int


class Kept(NamedTuple):
    """One operand or result that a node saves.

    Attributes:
      place: by which the node knows it: an operand, or -1 and below for results.
      operand: the call's operand that it is; -1 if it was computed.
      number: in the program.
      counter: the operand in whose storage it is; -1 if it has its own; None for the call's result.
      value: what is known of it; at rest.
      edge: where its gradient goes, see `GraphNode`.
    """

    place: int
    operand: int
    number: int
    counter: int | None
    value: Value
    edge: Any


class GraphNode(NamedTuple):
    """One node of the graph of a call.

    Attributes:
      kind: its class.
      state: what it differentiates.
      edges: for each of its operands None, the number of the operand of the call whose gradient it
        is, or another node of the call, by number, and its output.
      kept: all that it saves.
    """

    kind: type
    state: State
    edges: tuple[Any, ...]
    kept: tuple[Kept, ...]


class Template(NamedTuple):
    """The work of a call on small arrays, and the graph that it leaves.

    Attributes:
      inputs: numbers of values, and the operands that they are.
      values: how many there are.
      steps: what is computed.
      nodes: the graph.
      number, value, edge: of the result, as in `Kept`.
    """

    inputs: tuple[tuple[int, int], ...]
    values: int
    steps: tuple[Step, ...]
    nodes: tuple[GraphNode, ...]
    number: int
    value: Value
    edge: Any


def template_of(
    states: Sequence[State], operands: Mapping[Value, int], result: Value
) -> Template | None:
    """Make the template of what was recorded; None if NumPy, or a node alone, cannot do it.

    Args:
      states: those of the call, in order.
      operands: the values of its operands, by number.
      result: its one result, new memory.
    """
    inputs: list[tuple[int, int]] = []
    steps: list[Step] = []
    avals: list[Any] = []
    for state in states:
        entry = state.entry
        if entry is None or not all(map(_fits, state.values)):
            return None
        if type(entry) is Input:
            place = operands.get(state.value)
            if place is None:
                return None
            inputs.append((len(avals), place))
        elif not _is_plain(state):
            return None
        else:
            taken = tuple([avals[i] for i in entry.inputs])
            op = single_op(entry.call, taken)
            steps.append(Step(entry, op, is_checked(entry), len(avals)))
        avals += entry.avals
    if result.index >= len(avals) or result.version or result.state.call.op.view:
        return None
    storages = {v.storage: i for v, i in operands.items()}
    if result.storage in storages:
        return None
    nodes: list[GraphNode] = []
    numbers: dict[State, int] = {}
    for state in states if result.requires_grad else ():
        if type(state.entry) is Input or not any(v.requires_grad for v in state.values):
            continue
        if any(v.requires_grad and v.dtype not in FLOATS for v in (*state.values, *state.operands)):
            return None
        found = _node_of(state, operands, storages, numbers, result)
        if found is None:
            return None
        numbers[state] = len(nodes)
        nodes.append(found)
    edge = None
    if result.requires_grad:
        if result.role != NODE or result.edge is not result:
            return None
        edge = numbers[result.state], result.out
    return Template(
        tuple(inputs), len(avals), tuple(steps), tuple(nodes), result.index, result.resting, edge
    )


def _fits(value: Value) -> bool:
    return value.numel <= MOST and value.dtype in DTYPES and value.device is None


def _is_plain(state: State) -> bool:
    """Tell whether a step computes new values from others, or views them, and does nothing else."""
    call = state.call
    if type(call) is not Call or call.op.random or call.op.overwrites or call.many:
        return False
    op = call.op
    if op.namespace == "opaque" or op.no_gradient is not None or op in needs_xla:
        return False
    return all(v.version == 0 and not v.apart and not v.inference for v in state.values)


def _node_of(
    state: State, operands: Mapping[Value, int], storages: Mapping[int, int],
    numbers: Mapping[State, int], result: Value,
) -> GraphNode | None:  # fmt: skip
    edges = []
    for v in state.operands:
        edge = _edge_of(v, operands, numbers)
        if edge is False:
            return None
        edges.append(edge)
    kept: dict[int, Kept] = {}
    for index in (*needed(state), *[index for _, index in saved_places(state)]):
        value = state.operands[index] if index >= 0 else state.values[-1 - index]
        edge = _edge_of(value, operands, numbers) if index >= 0 else None
        if edge is False:
            return None
        counter: int | None = storages.get(value.storage, -1)
        if value is result:
            counter = None
        kept[index] = Kept(
            index, operands.get(value, -1), value.index, counter, value.resting, edge
        )
    kind = node_class(node_name(state))
    return GraphNode(kind, state, tuple(edges), tuple(kept.values()))


def _edge_of(value: Value, operands: Mapping[Value, int], numbers: Mapping[State, int]) -> Any:
    """Return where the gradient of a value goes, see `GraphNode`; False where nothing tells it."""
    if not value.requires_grad:
        return None
    edge = value.edge
    if edge is None:
        return False
    if edge.role in (LEAF, EXTERNAL):
        return operands.get(edge, False)
    return (numbers[edge.state], edge.out) if edge.state in numbers else False
