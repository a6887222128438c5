"""Writes that no version counts: through `.data`, and to what `.data` shares.

They are noted here; what a backward makes of them stands in `_autograd/data_writes.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import ref

from .._core.trie import State, Trace, Value, between_traces
from .._core.view_ops import Lens

# Tensors whose `.data` was set, and those that once shared memory with such writes, by their id.
_moved: dict[int, ref[Any]] = {}
_written: dict[int, ref[Any]] = {}
_last_move = [-1]  # after which traces that was for the last time, see `between_traces`


class DataWrite(NamedTuple):
    """A write to a tensor's data that its version counter did not see.

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
        """Tell whether a saved `value`, operand `index` or result, has other data now."""
        if value.storage not in self.lenses:
            return False
        held = self.held
        if held is None:
            return True
        # What views it or was detached from it keeps the memory.
        same = value.edge is held.edge
        if same and held.edge is None:
            same = value.index == held.index and value.apart == held.apart
        return same and is_the_tensor(value, index)


def is_the_tensor(value: Value, index: int) -> bool:
    """Tell whether the tensor itself was saved: an operand, or a result without a gradient."""
    return index >= 0 or not value.requires_grad


def note_data_write(trace: Trace, store: Any, members: list[Any]) -> None:
    """Note a write to `store` that some of its members' version counters did not see."""
    store.silent = True
    lenses: dict[int, Lens] = {store.cell._v.storage: ()}
    for m in members:
        number = (m._stale if m._stale is not None else m._v).storage
        lens = _to_root(m if m._base_ is None else m._base_)
        if number not in lenses or len(lens) < len(lenses[number]):
            lenses[number] = lens
    _add(trace, store.cell, lenses, None)


def _to_root(t: Any) -> Lens:
    """Return the lens of the tensor that `t` views in the trace.

    A tensor that was detached from a view is such a view.

    It has the number of that tensor, and `_read` goes through the views by itself.
    """
    lens, value = t._lens, t._stale if t._stale is not None else t._v
    while lens and is_view(value):
        lens, value = lens[:-1], value.state.operands[0]
    return lens  # type: ignore[no-any-return]


def is_view(value: Value) -> bool:
    op = getattr(getattr(value.state, "call", None), "op", None)
    return op is not None and op.view


def note_replaced_data(trace: Trace, t: Any, held: Value) -> None:
    """Note that `t.data` is set: who saved `t`, which held this, reads the new one.

    What shares its counter has its old memory, and still counts the writes to `t`.
    """
    if t._vc is None:
        t._vc = [0]
    members = [] if t._store is None else [m() for m in t._store.members]
    values = [m._known() for m in members if m is not None and m._vc is t._vc]
    numbers = {v.storage for v in (held, *values) if v.index >= 0}
    if numbers:
        trace.memory.elsewhere = {**(trace.memory.elsewhere or {}), **dict.fromkeys(numbers, t._vc)}
        trace.graph.hooked += 1  # a remembered backward looks at no counter
    if t._trace is trace and held.index >= 0:
        _add(trace, t, {held.storage: ()}, held)


def note_flag(trace: Trace, t: Any, held: Value) -> None:
    """Note another `requires_grad` of `t`, which held this: who saved `t` sees it too."""
    at: State | None = trace.state if held.index >= 0 and t._trace is trace else None
    while at is not None and at is not held.state:
        if held in at.operands:
            _add(trace, t, {held.storage: ()}, held, flagged=True)
            return
        at = at.parent


def note_new_data(t: Any) -> None:
    """Note for nodes of earlier programs that `t.data` was set."""
    _last_move[0] = between_traces()
    _remember(_moved, t)


def note_own_memory(t: Any) -> None:
    """Note that `t` has memory to itself from now on, which an uncounted write went to."""
    _remember(_written, t)


def _remember(those: dict[int, ref[Any]], t: Any) -> None:
    key = id(t)
    if key not in those:
        those[key] = ref(t, lambda _: those.pop(key, None))


def is_moved(t: Any) -> bool:
    """Tell whether `t.data` was set, ever."""
    return id(t) in _moved


def is_written(t: Any) -> bool:
    """Tell whether memory of `t` was written to without its version counter, ever."""
    return id(t) in _written or (t._store is not None and t._store.silent)


def has_been_rewritten(t: Any) -> bool:
    """Tell whether the memory that `t` always had was written to behind its version counter."""
    return id(t) not in _moved and is_written(t)


def _add(
    trace: Trace, source: Any, lenses: dict[int, Lens], held: Value | None, flagged: bool = False
) -> None:
    trace.memory.silent = (
        *trace.memory.silent,
        DataWrite(trace.state.depth, source, lenses, held, flagged),
    )


def wrote_silently(since: float) -> bool:
    """Tell whether a living tensor was written to unseen, or given other memory, after `since`.

    Args:
      since: the `serial` of a trace, or a later number: other memory that was given before it
        began is what its nodes have saved.
    """
    return bool(_written or _moved and _last_move[0] >= since)
