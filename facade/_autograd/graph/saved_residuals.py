"""The graph over a cut: nodes that stand on their own, with the arrays that a program left them."""

from __future__ import annotations

from operator import itemgetter
from typing import Any
from weakref import ref

from ..._core.trie import EXTERNAL, LEAF, State, Trace, Value, resting
from ..._rules.saved_columns import saved_places
from ..._tracing.inputs import from_array
from .edges import edge_of, node_of
from .holders import Holders
from .residual_plan import ResidualPlan
from .saved_origin import written_through
from .saved_value import Saved
from .value_views import lens_of


def save_residuals(trace: Trace, recipe: Any, outcome: Any, live: list[Any]) -> None:
    """Write the planned part of the graph out into nodes that stand on their own.

    Args:
      live: the tensors in the trace that somebody holds.
    """
    plan: ResidualPlan = recipe.saves
    counters = _version_counters(trace, plan, live)
    kept = map(itemgetter(0), plan.residuals)
    residuals = dict(zip(kept, recipe.plan.side.residuals, strict=True))
    nodes = [node_of(trace, s) for s in plan.states]
    for node in nodes:
        node.next_edges()
        node.retains = node.retains_of()
    holders = _LiveTensors(live)
    tensors: dict[Value, Any] = {}
    frames = trace.graph.frames or {}
    for node, read in zip(nodes, plan.read, strict=True):
        state = node.state
        if state in frames:
            node.frame, node.trace = frames[state], None
            continue
        places = (*read, *[index for _, index in saved_places(state)])
        node.saved = saved = {}
        for index in places:
            if index in saved:
                continue
            if index >= 0:
                value = state.operands[index]
                tensor = tensors.get(value)
                if tensor is None:
                    tensor = _operand_tensor(trace, recipe, outcome, holders, state, value)
                    tensors[value] = tensor
                saved[index] = _saved_operand(trace, counters, holders, state, value, tensor)
            else:
                out = -1 - index
                saved[index] = _saved_result(trace, recipe, outcome, counters, holders, state, out)
        residual = residuals.get(state)
        if residual is not None:
            node.residual = (residual, residual.arrays(outcome.residuals))
        for index in node.packed or ():
            saved.pop(index, None)
        node.trace = None


def _version_counters(trace: Trace, plan: ResidualPlan, live: list[Any]) -> dict[int, Any]:
    """Find the version counter of each storage that a saved value is in."""
    counters: dict[int, Any] = {}
    guarded = {v.storage for v in plan.values}
    for t in live:
        storage = t._v.storage if t._v.index >= 0 else getattr(t._stale, "storage", -1)
        if storage in guarded:
            if t._vc is None:
                t._vc = [0]
            # What hooks packed before a write has a counter of its own, which stands still.
            if storage not in counters or t._vc[0] > counters[storage][0]:
                counters[storage] = t._vc
    for storage, vc in (trace.memory.elsewhere or {}).items():
        if storage in guarded:
            counters.setdefault(storage, vc)
    return counters


class _LiveTensors:
    """Tensors that somebody holds, by what they hold.

    Attributes:
      by_value, by_stale: by the identity of the value, or of what it was before a write.
      mates: by values that writes made of another.
      sharers: by storage and number; `owners`: by storage and shape, those that are no views.
    """

    def __init__(self, live: list[Any]) -> None:
        self.live = live
        self.by_value = {id(t._v): t for t in live}
        self.by_stale = {id(t._stale): t for t in live if t._stale is not None}
        self.mates = Holders(live)
        self.sharers: dict[tuple[int, int], Any] = {}
        self.owners: dict[Any, Any] = {}
        for t in live:
            v = t._v if t._stale is None else t._stale
            if v.index >= 0 and (t._store is None or t is not t._store.cell):
                self.sharers.setdefault((v.storage, v.index), t)
                if t._store is not None and not t._lens:
                    self.owners.setdefault((v.storage, v.shape), t)

    def holder(self, value: Value) -> Any:
        """Find the tensor that holds a value, or held it before a write."""
        return self.by_value.get(id(value), self.by_stale.get(id(value)))

    def base_of(self, value: Value) -> Any:
        """Find the tensor that a value, which nobody holds, is a view of or shares memory with."""
        _, whole = lens_of(value)
        base = self.by_value.get(id(whole))
        if base is None:  # a tensor that it was detached from
            base = self.sharers.get((whole.storage, whole.index))
        if base is None:  # what it is by now: it was written to, and used again
            base = self.owners.get((whole.storage, whole.shape))
        return base


def _saved_result(
    trace: Trace, recipe: Any, outcome: Any, counters: dict[int, Any], live: _LiveTensors,
    state: State, out: int,
) -> Saved:  # fmt: skip
    """Save a result, without its `grad_fn`, which would close a cycle; `unpack` puts it back."""
    value = state.values[out]
    version = trace.versions.get(value.storage, 0) + value.version
    array = outcome.outputs[recipe.places[value.index]]
    view = written_through(state, out, live.live)
    counter = counters.get(value.storage)
    held = _weak(live.holder(value))
    return Saved(from_array(array), version, counter, held, mate=_weak(view))


def _saved_operand(
    trace: Trace, counters: dict[int, Any], live: _LiveTensors, state: State, value: Value,
    tensor: Any,
) -> Saved:  # fmt: skip
    """Save an operand: its tensor, its version, and who holds it."""
    version = trace.versions.get(value.storage, 0) + value.version
    vc = counters.get(value.storage)
    if vc is None and tensor._vc is not None:
        vc = tensor._vc
    # The tensor that the state had as an operand, also if its `.data` was set since.
    holder = _renewed(trace, value, state.depth) if trace.memory.silent else None
    if holder is None:
        holder = live.holder(value)
    if holder is not None:
        return Saved(tensor, version, vc, ref(holder), value in trace.graph.detached, None, None)
    mate, base = _weak(live.mates.of(value)), _weak(live.base_of(value))
    return Saved(tensor, version, vc, None, value in trace.graph.detached, mate, base)


def _operand_tensor(
    trace: Trace, recipe: Any, outcome: Any, live: _LiveTensors, state: State, value: Value
) -> Any:  # fmt: skip
    """Give the tensor of an operand: the user's own where it still can stand for the value."""
    tensor = None
    holder = live.by_value.get(id(value))
    if holder is None and trace.memory.silent:
        holder = _renewed(trace, value, state.depth, flagged=True)
    if holder is not None and _readable(holder):
        tensor = holder if value.role == LEAF or not value.requires_grad else None
    if tensor is None:
        tensor = _tensor_of_array(trace, outcome.outputs[recipe.places[value.index]], value)
    if trace.graph.duals and value in trace.graph.duals:
        tensor._duals = trace.graph.duals[value]
    return tensor


def _tensor_of_array(trace: Trace, array: Any, value: Value) -> Any:
    """Make a tensor of what a program returned for a value, with its place in the graph."""
    tensor: Any = from_array(array)
    version = trace.versions.get(value.storage, 0) + value.version
    if version:  # it is what so many writes left
        tensor._vc = [version]
    if value.strides is not None:
        tensor._v = resting(value.aval, strides=value.strides)
    edge = edge_of(trace, value)
    if edge is None:
        return tensor
    if edge[0].accumulates:
        leaf = edge[0].variable
        return leaf if _readable(leaf) else tensor
    tensor._v = resting(value.aval, True, EXTERNAL, strides=value.strides)
    tensor._node, tensor._out = edge
    return tensor


def _renewed(trace: Trace, value: Value, depth: int, flagged: bool = False) -> Any:
    """Find the tensor that had a value as an operand, and that has another since.

    Args:
      depth: of the state that it was an operand of.
      flagged: only one whose memory is the same.
    """
    for silent in reversed(trace.memory.silent):
        if silent.held is None or silent.depth < depth or flagged > silent.flagged:
            continue
        if silent.changes(value, 0):
            return silent.source
    return None


def _weak(t: Any) -> Any:
    return None if t is None else ref(t)


def _readable(t: Any) -> bool:
    """Tell whether a tensor itself can stand for the value that it has at the cut."""
    return t._stale is None and (t._array is not None or t._store is not None)
