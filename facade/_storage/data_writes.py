"""Writes that no version counts: through `.data`, and to what `.data` shares.

PyTorch's saved tensors are the tensors themselves, so backward reads what such a write left.
Values are immutable here: a node that was recorded before such a write reads what it saved
anew, from the storage as it is now.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import ref

from leafax.functional.program.op import TABLE

from .._autograd.saved.saved_values import lens_of, saved_places
from .._core.dtypes import of
from .._core.grad_modes import within
from .._core.trie import Mode, State, Trace, Value, between_traces, local
from .._core.view_ops import Lens
from .._tracing.inputs import enter, make
from .._tracing.record import apply, record
from .autograd_roles import keep_edge
from .read import through, without_grad

_GONE = (
    "a tensor of shape {} that was saved for backward has got memory of shape {} since, by "
    "`.data = `, so its gradient cannot be computed. Call backward() before, or save a clone()."
)

# Tensors whose `.data` was set, and those that once shared memory with such writes, by their id.
_moved: dict[int, ref[Any]] = {}
_written: dict[int, ref[Any]] = {}
_last_move = [-1]  # after which traces that was for the last time, see `between_traces`


class Silent(NamedTuple):
    """One such write.

    Attributes:
      depth: where in the trace it happened.
      source: the tensor to read what was saved from: a storage's cell.
      lenses: through what the tensors that share it see its cell, by what the trace calls their
        storages; a tensor and its views have one number.
      held: None if it went to the memory; else a tensor that held this got other memory. Saved
        results stay with the memory that they were in, operands with their tensor.
      flagged: only whether the tensor requires grad is another, its memory is the same.
    """

    depth: int
    source: Any
    lenses: dict[int, Lens]
    held: Value | None
    flagged: bool = False

    def changes(self, value: Value, index: int) -> bool:
        """Whether what was saved as `value`, operand `index` or result, is another now."""
        if value.storage not in self.lenses:
            return False
        held = self.held
        if held is None:
            return True
        # What views it or was detached from it keeps the memory.
        same = value.edge is held.edge
        if same and held.edge is None:
            same = value.index == held.index and value.apart == held.apart
        return same and _is_the_tensor(value, index)


def _is_the_tensor(value: Value, index: int) -> bool:
    """Whether the tensor itself was saved: an operand, or a result without a gradient."""
    return index >= 0 or not value.requires_grad


class Fresh:
    """A saved tensor that is read anew; stands where hooks have a packed one."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def unpack(self, node: Any) -> Any:
        return self._tensor


def note(trace: Trace, store: Any, members: list[Any]) -> None:
    """A write to `store` that some of its members' version counters did not see."""
    store.silent = True
    lenses: dict[int, Lens] = {store.cell._v.storage: ()}
    for m in members:
        number = (m._stale if m._stale is not None else m._v).storage
        lens = _to_root(m if m._base_ is None else m._base_)
        if number not in lenses or len(lens) < len(lenses[number]):
            lenses[number] = lens
    _add(trace, store.cell, lenses, None)


def _to_root(t: Any) -> Lens:
    """The lens of what `t` is a view of in the trace, as what was detached from a view is.

    It has the number of that tensor, and `_read` goes through the views by itself.
    """
    lens, value = t._lens, t._stale if t._stale is not None else t._v
    while lens and _is_view(value):
        lens, value = lens[:-1], value.state.operands[0]
    return lens  # type: ignore[no-any-return]


def _is_view(value: Value) -> bool:
    op = getattr(getattr(value.state, "call", None), "op", None)
    return op is not None and op.view


def replaced(trace: Trace, t: Any, held: Value) -> None:
    """`t.data` is set: who saved `t`, which held this, reads the new one.

    What shares its counter has its old memory, and still counts the writes to `t`.
    """
    if t._vc is None:
        t._vc = [0]
    members = [] if t._store is None else [m() for m in t._store.members]
    values = [m._known() for m in members if m is not None and m._vc is t._vc]
    numbers = {v.storage for v in (held, *values) if v.index >= 0}
    if numbers:
        trace.elsewhere = {**(trace.elsewhere or {}), **dict.fromkeys(numbers, t._vc)}
        trace.hooked += 1  # a remembered backward looks at no counter
    if t._trace is trace and held.index >= 0:
        _add(trace, t, {held.storage: ()}, held)


def flagged(trace: Trace, t: Any, held: Value) -> None:
    """`requires_grad` of `t`, which held this, is another now: who saved `t` sees it too."""
    at: State | None = trace.state if held.index >= 0 and t._trace is trace else None
    while at is not None and at is not held.state:
        if held in at.operands:
            _add(trace, t, {held.storage: ()}, held, flagged=True)
            return
        at = at.parent


def moved(t: Any) -> None:
    """`t.data` was set: so do nodes of earlier programs."""
    _last_move[0] = between_traces()
    _remember(_moved, t)


def alone(t: Any) -> None:
    """`t` has its memory to itself from now on, which such a write went to."""
    _remember(_written, t)


def _remember(those: dict[int, ref[Any]], t: Any) -> None:
    key = id(t)
    if key not in those:
        those[key] = ref(t, lambda _: those.pop(key, None))


def _is_written(t: Any) -> bool:
    """Whether memory of `t` was written to without its version counter, ever."""
    return id(t) in _written or (t._store is not None and t._store.silent)


def has_been_rewritten(t: Any) -> bool:
    """Whether the memory that `t` always had was written to behind its version counter."""
    return id(t) not in _moved and _is_written(t)


def _add(
    trace: Trace, source: Any, lenses: dict[int, Lens], held: Value | None, flagged: bool = False
) -> None:
    trace.silent = (*trace.silent, Silent(trace.state.depth, source, lenses, held, flagged))


def wrote_silently(since: float) -> bool:
    """Tell whether a living tensor was written to unseen, or given other memory, after `since`.

    Args:
      since: the `serial` of a trace, or a later number: other memory that was given before it
        began is what its nodes have saved.
    """
    return bool(_written or _moved and _last_move[0] >= since)


def changed(node: Any) -> dict[int, Fresh]:
    """What the node saved and such writes have changed since, by operand or -1 - output."""
    trace = local.trace
    state: State = node.state
    if node.trace is not trace:
        return _kept(node)
    # Flags matter to gradients that are differentiated again.
    later = [s for s in trace.silent if s.depth >= state.depth]
    later = [s for s in later if not s.flagged or local.mode.grad]
    found: dict[int, Fresh] = {}
    if not later:
        return found
    overwrites = getattr(getattr(state.call, "op", None), "overwrites", False)
    for name, index in saved_places(state):
        value = state.operands[index] if index >= 0 else state.values[-1 - index]
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


def by_result(node: Any) -> dict[int, Fresh]:
    """The result that a gradient of a gradient goes through, where the node saved that."""
    from .._rules.result_rules import RESULT_RULES

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


def _now(trace: Trace, silent: Silent, value: Value) -> Value | None:
    """What `value` would be if it were read from the storage now."""
    if silent.held is not None:
        return without_grad(lambda: _fitting(enter(silent.source, trace), value))
    return without_grad(lambda: _read(trace, silent, value))


def _read(trace: Trace, silent: Silent, value: Value) -> Value | None:
    if _is_view(value):
        call, base = value.state.call, _read(trace, silent, value.state.operands[0])
        if base is None:
            return None
        seen = record(call.op, (base, *call.args[1:]), call.kwargs, budget=False)[0]
        return seen.values[value.out]
    return _fitting(through(trace, silent.source, silent.lenses.get(value.storage, ())), value)


def _fitting(now: Value, value: Value) -> Value | None:
    """What stands for `value`, in its dtype; None if the shape is another."""
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
        value = state.operands[index] if index >= 0 else state.values[-1 - index]
        moved = _is_the_tensor(value, index) and id(holder) in _moved
        if tuple(value.shape) != tuple(holder._v.shape):
            if moved and holder is saved.tensor:
                raise RuntimeError(_GONE.format(list(value.shape), list(holder._v.shape)))
            continue
        # With a saved result also where the tensor itself was written to: that is of the old one.
        again = moved or (index >= 0 and stale and _is_written(holder))
        if again and holder is saved.tensor and holder._v.dtype == value.dtype:
            found[index] = Fresh(holder)
            continue
        if moved or (holder is not saved.tensor and _is_written(holder)):
            fresh = holder.detach()
            if value.dtype.kind in "fcV":
                fresh = fresh.to(of(value.dtype))
            found[index] = Fresh(_with_history(fresh, saved.tensor) if index >= 0 else fresh)
    return found or _indices(node)


def _indices(node: Any) -> dict[int, Fresh]:
    """The indices that a node saved instead of its operand, if that was written to since."""
    from .._autograd.formulas.indexing import FORMULAS as INDEXED

    op, kept = getattr(node.state.call, "op", None), node.saved or {}
    if op is None or op.qualified not in INDEXED:
        return {}
    operands = [s.holder() for index, s in kept.items() if index >= 0 and s.holder is not None]
    if not any(t is not None and (id(t) in _moved or _is_written(t)) for t in operands):
        return {}
    places = [index for _, index in saved_places(node.state) if index < 0 and index in kept]
    return {index: Fresh(kept[index].tensor) for index in places}


def _of_memory(node: Any, index: int, saved: Any) -> Any:
    """What a view or detached tensor that only the node had would hold now, if that changed."""
    base = saved.of() if saved.of is not None else None
    if base is None or index < 0 or id(base) in _moved or not _is_written(base):
        return None
    mode, fresh = local.mode, base.detach()
    with within(Mode.of(False, mode.inference, mode.autocast)):
        for op, args, kwargs in lens_of(node.state.operands[index])[0]:
            fresh = apply(op, fresh, *args, **kwargs)
    return _with_history(fresh, saved.tensor)


def _with_history(fresh: Any, tensor: Any) -> Any:
    """`fresh` with the gradient's way of `tensor`."""
    if tensor._tracked:
        from .._autograd.graph.python_node import edge_from, set_history

        edge = edge_from(tensor)
        if edge is not None:
            set_history(fresh, *edge)
    return fresh
