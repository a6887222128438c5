"""Saved tensors that a write through `.data` changed: what a backward reads in their place.

PyTorch's saved tensors are the tensors themselves, so backward reads what such a write left.
Values are immutable here: a node that was recorded before such a write reads what it saved
anew, from the storage as it is now.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from .._core.dtypes import of
from .._core.grad_modes import within
from .._core.trie import Mode, State, Trace, Value, local
from .._dispatch.record import apply, record
from .._rules.result_rules import RESULT_RULES
from .._rules.saved_columns import saved_places, value_at
from .._storage.autograd_roles import keep_edge
from .._storage.data_writes import DataWrite, is_moved, is_the_tensor, is_view, is_written
from .._storage.enter import enter, through, without_grad
from .._tracing.inputs import make
from .extensions import extensions
from .formulas.indexing import FORMULAS as INDEXED
from .graph.edges import edge_from
from .graph.history import set_history
from .graph.value_views import lens_of

_GONE = (
    "a tensor of shape {} that was saved for backward has got memory of shape {} since, by "
    "`.data = `, so its gradient cannot be computed. Call backward() before, or save a clone()."
)


class Fresh:
    """A saved tensor that is read anew; stands where hooks have a packed one."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def unpack(self, node: Any) -> Any:
        return self._tensor


def rewritten(node: Any) -> dict[int, Fresh]:
    """Find what the node saved and such writes have changed since, by operand or -1 - output."""
    trace = local.trace
    state: State = node.state
    if node.trace is not trace:
        return _kept(node)
    # Flags matter to gradients that are differentiated again.
    later = [s for s in trace.memory.silent if s.depth >= state.depth]
    later = [s for s in later if not s.flagged or local.mode.grad]
    found: dict[int, Fresh] = {}
    if not later:
        return found
    overwrites = getattr(getattr(state.call, "op", None), "overwrites", False)
    for name, index in saved_places(state):
        value = value_at(state, index)
        if overwrites and name == "self":
            continue
        writes = [s for s in later if s.changes(value, index)]
        if writes:  # once its tensor has other memory, the old one does not matter
            silent = next((s for s in writes if s.held is not None), writes[0])
            fresh = _now(trace, silent, value)
            if fresh is not None:
                fresh = fresh if silent.flagged else _linked(trace, fresh, value)
                found[index] = Fresh(make(fresh, trace))
    return found


def kept_result(node: Any) -> dict[int, Fresh]:
    """Find the result that a gradient of a gradient goes through, where the node saved that."""
    op = getattr(node.state.call, "op", None)
    if op is None or op.name not in RESULT_RULES or op.overwrites:
        return {}
    if all(index != -1 for _, index in saved_places(node.state)):
        return {}
    trace = local.trace
    if node.trace is trace:
        return {-1: Fresh(make(node.state.values[0], trace))}
    return {-1: Fresh(node.unpack(-1))}


def _linked(trace: Trace, fresh: Value, value: Value) -> Value:
    return keep_edge(trace, fresh, value) if value.role else fresh


def _now(trace: Trace, silent: DataWrite, value: Value) -> Value | None:
    """Read from the storage what `value` would be now."""
    if silent.held is not None:
        return without_grad(lambda: _fitting(enter(silent.source, trace), value))
    return without_grad(lambda: _read(trace, silent, value))


def _read(trace: Trace, silent: DataWrite, value: Value) -> Value | None:
    if is_view(value):
        call, base = value.state.call, _read(trace, silent, value.state.operands[0])
        if base is None:
            return None
        seen = record(call.op, (base, *call.args[1:]), call.kwargs, budget=False)[0]
        return seen.values[value.out]
    return _fitting(through(trace, silent.source, silent.lenses.get(value.storage, ())), value)


def _fitting(now: Value, value: Value) -> Value | None:
    """Give what stands for `value`, in its dtype; None if the shape is another."""
    if tuple(value.shape) != tuple(now.shape):
        return None
    if now.dtype == value.dtype or value.dtype.kind not in "fcV":  # no index is cast
        return now
    return record(TABLE["_to_copy"], (now, value.dtype), {}, budget=False)[0].value


def _kept(node: Any) -> dict[int, Fresh]:
    found: dict[int, Fresh] = {}
    places = saved_places(node.state)
    # What was computed of the operands as they were is of no use once they were written to.
    stale = node.residual is not None or any(index < 0 for _, index in places)
    for _, index in places:
        saved = (node.saved or {}).get(index)
        if saved is None:
            continue
        holder = saved.holder() if saved.holder is not None else None
        if holder is None:
            read = _of_memory(node, index, saved)
            if read is not None:
                found[index] = Fresh(read)
            continue
        state = node.state
        value = value_at(state, index)
        moved = is_the_tensor(value, index) and is_moved(holder)
        if tuple(value.shape) != tuple(holder._v.shape):
            if moved and holder is saved.tensor:
                raise RuntimeError(_GONE.format(list(value.shape), list(holder._v.shape)))
            continue
        # With a saved result also where the tensor itself was written to: that is of the old one.
        again = moved or (index >= 0 and stale and is_written(holder))
        if again and holder is saved.tensor and holder._v.dtype == value.dtype:
            found[index] = Fresh(holder)
            continue
        if moved or (holder is not saved.tensor and is_written(holder)):
            fresh = holder.detach()
            if value.dtype.kind in "fcV":
                fresh = fresh.to(of(value.dtype))
            found[index] = Fresh(_with_history(fresh, saved.tensor) if index >= 0 else fresh)
    return found or _indices(node)


def _indices(node: Any) -> dict[int, Fresh]:
    """Find the indices that a node saved instead of its operand, if that was written to since."""
    op, kept = getattr(node.state.call, "op", None), node.saved or {}
    if op is None or op.qualified not in INDEXED:
        return {}
    operands = [s.holder() for index, s in kept.items() if index >= 0 and s.holder is not None]
    if not any(t is not None and (is_moved(t) or is_written(t)) for t in operands):
        return {}
    places = [index for _, index in saved_places(node.state) if index < 0 and index in kept]
    return {index: Fresh(kept[index].tensor) for index in places}


def _of_memory(node: Any, index: int, saved: Any) -> Any:
    """Read what a view or detached tensor that only the node had holds now, if that changed."""
    base = saved.of() if saved.of is not None else None
    if base is None or index < 0 or is_moved(base) or not is_written(base):
        return None
    mode, fresh = local.mode, base.detach()
    with within(Mode.of(False, mode.inference, mode.autocast)):
        for op, args, kwargs in lens_of(node.state.operands[index])[0]:
            fresh = apply(op, fresh, *args, **kwargs)
    return _with_history(fresh, saved.tensor)


def _with_history(fresh: Any, tensor: Any) -> Any:
    """Give `fresh` the gradient's way of `tensor`."""
    if tensor._tracked:
        edge = edge_from(tensor)
        if edge is not None:
            set_history(fresh, *edge)
    return fresh


extensions.rewritten, extensions.kept_result = rewritten, kept_result
