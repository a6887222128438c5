"""Writing to a tensor: what it does to all that share its storage, and to version counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from .._core.gradient_graph import graph
from .._core.trie import LEAF, NOWHERE, Trace, Value, local, resting
from .._core.view_ops import Lens, spell, writer
from .._tracing.inputs import renew_entry
from .._tracing.take import take
from .._tracing.undo import note_write
from .autograd_roles import alias, keep_edge, tag
from .data_writes import note_data_write
from .enter import drop_grad_fn, enter, move_retain, plain_kind, through, values_of, without_grad

if TYPE_CHECKING:
    from .shared_storage import Storage


def rebind(t: Any, value: Value) -> None:
    """Bind `t` to `value` of the running trace from now on, as after a write."""
    trace = local.trace
    if t._node is not None:
        drop_grad_fn(t)
    me = ref(t)
    note_write(trace, t, me)
    t._trace = None
    t._v, t._trace, t._array, t._stale = value, trace, None, None
    trace.memory.viewed |= t._shares
    trace.refs.append(me)


def write(t: Any, value: Value, tracked: bool = False, counts: bool = True) -> None:
    """Write `value` (same shape and dtype) into `t`, for itself and all that share its storage.

    Args:
      tracked: `value` has a history that the write made; views go through `write_view` then.
      counts: in the version counters; a kernel that writes behind autograd's back does not.
    """
    trace = local.trace
    if counts:
        bump(t)
    store = t._store
    if tracked and t._retains:
        move_retain(t, value, trace)
    if store is None:
        rebind(t, value)
        return
    # A view whose history nobody can tell keeps what it had: errors name the node.
    before, base = t._stale, t._base_
    lost = (before, t._node, t._out) if t._creation and before is not None else None
    # One of a base that was cut off still has a node, which leads nowhere.
    cut = before is not None and base is not None and before.role > LEAF and not base._tracked
    rebind(t, value)
    raw = alias(trace, value, plain_kind(value))
    _write_cell(trace, t, raw, t._lens, counts)
    _outdate(store, t)
    t._behind = base is not None
    if repeats(t) or cut or base is not None and (value.requires_grad or base._tracked):
        make_stale(t)  # the version of its history is no longer the base's
        if lost is not None:
            t._stale, t._node, t._out = lost
        elif cut:
            t._stale = before


# View ops whose result may hold one element several times.
REPEATING = frozenset({"expand", "broadcast_to", "as_strided", "unfold"})


def repeats(t: Any) -> bool:
    """Return whether elements of `t` may share memory."""
    return any(op.name in REPEATING for op, _, _ in t._lens)


def write_view(t: Any, whole: Value, own: Value | None = None) -> None:
    """Bring a view and its base up to date after a recorded write through the view.

    `whole` is the base's new value.

    Args:
      own: what the view now holds, for one that reaches out of its base.
    """
    trace, base = local.trace, t._base_
    if own is not None:
        _write_cell(trace, t, own, t._lens, counts=False)
    bump(t)
    if t._retains:  # at the node that it gets when it is asked for
        graph.unretain(t)
    if base._retains:
        move_retain(base, whole, trace)
    rebind(base, whole)
    t._store.writes(t)
    _write_cell(trace, t, alias(trace, whole, plain_kind(whole)), base._lens)
    _outdate(t._store, base)


def _write_cell(trace: Trace, t: Any, raw: Value, lens: Lens, counts: bool = True) -> None:
    """Put `raw` at `lens` in the cell; versions go on counting as the cell's."""
    cell, store = t._store.cell, t._store
    old = enter(cell, trace)
    if lens:
        structure, flat = spell(lens)
        call = writer(structure, False)
        raw = without_grad(lambda: take(trace, call, (old, raw, *values_of(flat, trace))).value)
    version = old.version + (1 if counts and t._vc is store.vc else 0)
    kind = raw
    if raw.inference != old.inference:  # written in another mode than it was made in
        kind = resting(raw.aval, False, NOWHERE, old.inference, raw.strides)
    rebind(cell, tag(trace, raw, kind, old.storage, version))


def _outdate(store: Storage, writer: Any) -> None:
    """Make all members but the writer stale."""
    alive = []
    unseen = False
    for member in store.members:
        m = member()
        if m is not None:
            alive.append(member)
            if m is writer:
                continue
            if m._vc is writer._vc:
                make_stale(m)
                continue
            unseen = True
            if m._base_ is not None and m._stale is None:
                _reread(m)
            else:
                make_stale(m)
    store.members[:] = alive
    if unseen:
        note_data_write(local.trace, store, [m for m in (r() for r in alive) if m is not None])


def _reread(t: Any) -> None:
    """Read a view anew whose version counter saw no write: its history stays."""
    trace = local.trace
    old = enter(t, trace)
    value = without_grad(lambda: through(trace, t._store.cell, t._lens))
    value = keep_edge(trace, value, old) if old.role else value
    history = t._node, t._out
    rebind(t, tag(trace, value, value if old.role else old, old.storage, old.version))
    t._node, t._out = history


def make_stale(t: Any) -> None:
    if t._stale is None:
        t._stale = t._v
    if t._base_ is not None:
        t._behind = True
    t._v, t._array = t._v.resting, None


def bump(t: Any, writes: int = 1) -> None:
    """Count writes in the version counter that `t` shares."""
    if t._vc is None:
        t._vc = [0]
    t._vc[0] += writes


def written_once(out: Any, times: int = 1) -> Any:
    """Mark a new tensor as written to once, as PyTorch made it in place; return it."""
    out._vc = [times]
    if out._v.index >= 0:
        local.trace.versions[out._v.storage] = times
    return out


def written(out: Any, times: int = 1) -> Any:
    """Mark a new tensor as written to so often; inference tensors have no version."""
    return written_once(out, times) if times and not out._v.inference else out


def touch(t: Any) -> None:
    """Count a write that changed no values."""
    trace = local.trace
    cell = t if t._store is None else t._store.cell
    # A view whose history nobody can tell stays as it is: its write is counted all the same.
    lost = t._creation and t._base_ is not None and t._stale is not None
    known = cell if lost else t
    value = enter(known, trace)
    bump(t)
    sharing = [] if t._store is None else [m() for m in t._store.members]
    for x in {id(known): known, id(cell): cell}.values():
        old = enter(x, trace)
        # After `resize_` the two have numbers of their own for the memory.
        seen = old if x._vc is t._vc and old.storage != value.storage else value
        new = tag(trace, old, old, seen.storage, seen.version + 1)
        if old.role == LEAF:
            trace.sources[new] = x
        x._v = new
        renew_entry(trace, x, new)
    for m in sharing:
        if m is not None and m._vc is t._vc and (m is not t or m._base_ is not None):
            make_stale(m)  # autograd makes the history of views anew
