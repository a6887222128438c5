"""The graph over a cut: what a later `backward()` may need is written out of the trace.

Each node that somebody can still reach gets its edges and the arrays that its gradient reads.
What an earlier backward has freed is not kept, but for numbers that became inputs of the program:
nodes that save nothing can be walked again, and an index is a constant to PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from weakref import ref

from ..._core.trie import EXTERNAL, LEAF, NODE, State, Trace, Value, resting
from ..._rules.reads_of_gradients import needed, wanted_of
from ..._rules.saved_columns import active_saves, saved_places
from ..._tracing.inputs import from_array
from .edges import edge_of, node_of
from .holders import Holders
from .saved_origin import written_through
from .saved_value import Saved
from .value_views import lens_of


class Keep(NamedTuple):
    """What the run of a program must return for later backwards."""

    states: tuple[State, ...]
    values: tuple[Value, ...]
    residuals: tuple[tuple[State, tuple[int, ...]], ...]
    read: tuple[frozenset[int], ...]  # by each state's gradient, among its operands


def to_keep(trace: Trace, live: Sequence[Value]) -> Keep | None:
    """What the graph's live part needs to be differentiated after this cut."""
    edges = [v.edge for v in live if v.role == NODE and v.edge is not None]
    stack: list[State] = [edge.state for edge in edges if _stays(edge.state, trace)]
    if trace.grad_fns:
        stack += [s for s, n in trace.grad_fns.items() if not n.is_freed()]
    if not stack:
        return None
    seen: set[State] = set()
    while stack:
        state = stack.pop()
        if state in seen or not _stays(state, trace):
            continue
        seen.add(state)
        stack += _before(state)
    states = tuple(sorted(seen, key=lambda s: s.depth))
    values: dict[Value, None] = {}
    residuals = []
    read: list[frozenset[int]] = []
    frames = trace.frames or {}
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
        if state.call.residuals:
            residuals.append((state, wanted_of(state)))
    return Keep(states, tuple(values), tuple(residuals), tuple(read))


def _before(state: State) -> list[State]:
    """The states that its gradients go on to."""
    edges = [v.edge for v in state.operands if v.requires_grad and v.edge is not None]
    return [edge.state for edge in edges if edge.role == NODE]


def _stays(state: State, trace: Trace) -> bool:
    return state not in trace.freed or _again(state)


def _again(state: State) -> bool:
    """Whether it, or what leads to it, can be walked once it is freed, and reads a number then."""
    if state.again is None:
        state.again = any(
            not active_saves(at) and any(v.weak for v in at.operands) and needed(at)
            for at in _freeable(state)
        )
    return state.again


def _freeable(state: State) -> Iterator[State]:
    """It and what leads to it, not beyond nodes that cannot be walked once they are freed."""
    seen, stack = {state}, [state]
    while stack:
        at = stack.pop()
        yield at
        if not active_saves(at):
            new = [s for s in _before(at) if s not in seen]
            seen.update(new)
            stack += new


def keep(trace: Trace, recipe: Any, outcome: Any, live: list[Any]) -> None:
    """Write the kept part of the graph out into nodes that stand on their own."""
    kept: Keep = recipe.saves
    counters: dict[int, Any] = {}
    guarded = {v.storage for v in kept.values}
    for t in live:
        storage = t._v.storage if t._v.index >= 0 else getattr(t._stale, "storage", -1)
        if storage in guarded:
            if t._vc is None:
                t._vc = [0]
            # What hooks packed before a write has a counter of its own, which stands still.
            if storage not in counters or t._vc[0] > counters[storage][0]:
                counters[storage] = t._vc
    for storage, vc in (trace.elsewhere or {}).items():
        if storage in guarded:
            counters.setdefault(storage, vc)
    residuals = iter(recipe.plan.side.residuals)
    nodes = [node_of(trace, s) for s in kept.states]
    tensors: dict[Value, Any] = {}
    for node in nodes:
        node.next_edges()
        node.retains = node.retains_of()
    holders = {id(t._v): t for t in live}
    stale = {id(t._stale): t for t in live if t._stale is not None}
    mates = Holders(live)
    sharers: dict[tuple[int, int], Any] = {}
    owners: dict[Any, Any] = {}
    for t in live:
        v = t._v if t._stale is None else t._stale
        if v.index >= 0 and (t._store is None or t is not t._store.cell):
            sharers.setdefault((v.storage, v.index), t)
            if t._store is not None and not t._lens:
                owners.setdefault((v.storage, v.shape), t)

    def saved_result(state: State, out: int) -> Saved:
        # Without its grad_fn, which would close a cycle; `unpack` puts it back.
        value = state.values[out]
        version = trace.versions.get(value.storage, 0) + value.version
        array = outcome.outputs[recipe.places[value.index]]
        holder = holders.get(id(value), stale.get(id(value)))
        held = None if holder is None else ref(holder)
        view = written_through(state, out, live)
        mate = None if view is None else ref(view)
        counter = counters.get(value.storage)
        return Saved(from_array(array), version, counter, held, mate=mate)

    def renewed(value: Value, state: State, flagged: bool = False) -> Any:
        """The tensor that `state` had as an operand and that has another value since.

        Args:
          flagged: only one whose memory is the same.
        """
        for silent in reversed(trace.silent):
            if silent.held is None or silent.depth < state.depth or flagged > silent.flagged:
                continue
            if silent.changes(value, 0):
                return silent.source
        return None

    def holder_now(value: Value, state: State) -> Any:
        """The tensor that `state` had as an operand, also if its `.data` was set since."""
        now = renewed(value, state) if trace.silent else None
        return holders.get(id(value), stale.get(id(value))) if now is None else now

    def saved(value: Value, state: State) -> Saved:
        version = trace.versions.get(value.storage, 0) + value.version
        tensor = tensors.get(value)
        if tensor is None:
            holder = holders.get(id(value))
            if holder is None and trace.silent:
                holder = renewed(value, state, flagged=True)
            if holder is not None and _readable(holder):
                tensor = holder if value.role == LEAF or not value.requires_grad else None
            if tensor is None:
                array = outcome.outputs[recipe.places[value.index]]
                tensor = from_array(array)
                if version:  # it is what so many writes left
                    tensor._vc = [version]
                if value.strides is not None:
                    tensor._v = resting(value.aval, strides=value.strides)
                edge = edge_of(trace, value)
                if edge is not None:
                    if edge[0].accumulates:
                        leaf = edge[0].variable
                        tensor = leaf if _readable(leaf) else tensor
                    else:
                        tensor._v = resting(value.aval, True, EXTERNAL, strides=value.strides)
                        tensor._node, tensor._out = edge
            if trace.duals and value in trace.duals:
                tensor._duals = trace.duals[value]
            tensors[value] = tensor
        vc = counters.get(value.storage)
        if vc is None and tensor._vc is not None:
            vc = tensor._vc
        holder = holder_now(value, state)
        held = None if holder is None else ref(holder)
        mate = mates.of(value) if holder is None else None
        mate = None if mate is None else ref(mate)
        of = None
        if holder is None:
            _, whole = lens_of(value)
            base = holders.get(id(whole))
            if base is None:  # a tensor that it was detached from
                base = sharers.get((whole.storage, whole.index))
            if base is None:  # what it is by now: it was written to, and used again
                base = owners.get((whole.storage, whole.shape))
            of = None if base is None else ref(base)
        return Saved(tensor, version, vc, held, value in trace.detached, mate, of)

    for node, read in zip(nodes, kept.read, strict=True):
        state = node.state
        if trace.frames and state in trace.frames:
            node.frame, node.trace = trace.frames[state], None
            continue
        node.saved = {i: saved(state.operands[i], state) for i in read}
        for _, index in saved_places(state):
            if index >= 0:
                node.saved[index] = saved(state.operands[index], state)
            else:
                node.saved[index] = saved_result(state, -1 - index)
        if state.call.residuals:
            residual = next(residuals)
            node.residual = (residual, residual.arrays(outcome.residuals))
        for index in node.packed or ():
            node.saved.pop(index, None)
        node.trace = None


def _readable(t: Any) -> bool:
    """Whether `t` itself can stand for the value that it has at the cut."""
    return t._stale is None and (t._array is not None or t._store is not None)
