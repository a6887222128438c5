"""Shared storage: views, detached tensors, and what a write through one does to the others.

Values are immutable, so sharing is bookkeeping. A `Storage` has a *cell*, a tensor without
autograd that always holds the whole data, and members that read it through lenses: a member's
lens is the view ops from the cell to it (none for the base and for detached tensors). Writing
through a member writes the cell and makes the others stale; a stale member is read anew when it
is next used, so nothing is paid for views that nobody looks at again. A version counter, shared
by all members, counts the writes.

Autograd follows PyTorch: a write through a view in grad mode gives its base a new history
(`CopySlices`), and all views of that base get theirs from it (`AsStridedBackward0`). Written
behind autograd's back (no_grad, detached), a tensor keeps its edge and only the data changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from leafax.functional import Op, is_differentiable

from ._enter import alias, enter, from_array, keep_edge, make
from ._handle import Handle
from ._lens import PICKED, Lens, Replayed, pick, replayed, spell, writer
from ._record import record
from ._trace import EXTERNAL, LEAF, NODE, NOWHERE, Mode, State, Trace, Value, local, resting


class Storage:
    """The cell and the tensors that read it."""

    __slots__ = ("cell", "members", "vc", "silent")

    def __init__(self, cell: Any, vc: list[int]) -> None:
        self.cell, self.vc = cell, vc
        self.members: list[ref[Any]] = []
        self.silent = False  # written to behind the back of a member's version counter


def storage_of(t: Any) -> Storage:
    """The tensor's shared storage; made when the first sharer appears."""
    if t._store is None:
        if t._vc is None:
            t._vc = [0]
        trace = local.trace
        if t._array is not None:
            cell = from_array(t._array)
            if t._v.strides is not None:
                cell._v = resting(cell._v.aval, strides=t._v.strides)
            cell._vc = t._vc
            if t._trace is trace and t._v.index >= 0:
                cell._v, cell._trace = alias(trace, t._v, cell._v), trace
                trace.entered[id(cell)] = (ref(cell), cell._v)
                trace.refs.append(ref(cell))
        else:
            value = enter(t, trace)
            cell = make(alias(trace, value, _plain(value)), trace)
            cell._vc = t._vc
        _join(t, Storage(cell, t._vc))
    return t._store  # type: ignore[no-any-return]


def _join(t: Any, store: Storage) -> None:
    t._store, t._shares = store, True
    store.members.append(ref(t))


def unshare(t: Any) -> None:
    """Give a resting tensor its storage back once all that shared it are gone."""
    store = t._store
    if t is store.cell or t._stale is not None or store.cell._array is None:
        return
    if all(m() is None or m() is t for m in store.members):
        t._array, t._shares = store.cell._array, False
        del t._store


def leave(t: Any, store: Storage) -> None:
    """Let `t` no longer share this storage."""
    store.members[:] = [m for m in store.members if m() is not t]
    del t._store
    t._shares, t._lens = False, ()


def share(source: Any, out: Any, lens: Lens, *, view: bool) -> Any:
    """Let `out` share the storage of `source`, seen through `lens`; as its view, or detached."""
    store = storage_of(source)
    _join(out, store)
    out._vc = source._vc
    out._lens = source._lens + lens
    if view:
        out._base_ = source if source._base_ is None else source._base_
        out._blens = source._blens + lens
        if local.view_replay:
            out._blens = Replayed(out._blens)
    if source._dual_root is not None and view:
        out._dual_root = source._dual_root
    return out


def adopt(source: Any, t: Any) -> None:
    """Let `t` share the storage of `source`, counting its versions and keeping its history."""
    store = storage_of(source)
    _join(t, store)
    t._lens = source._lens


# Views that come as a tuple; what PyTorch allows with them differs.
_MANY = frozenset({
    "unbind", "split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit",
})  # fmt: skip


def share_views(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], outs: list[Any]) -> None:
    """Tie the results of a view op to its first argument."""
    source, mode = args[0], local.mode
    creation = "inference" if mode.inference else "" if mode.grad else "no_grad"
    many = op.name in _MANY
    if many and not creation:
        creation = "multi"
    for k, out in enumerate(outs):
        step = pick(op, k) if many and op not in PICKED else op
        if source._v.inference:  # shares memory, and autograd will never ask
            share(source, out, ((step, args[1:], kwargs),), view=False)
            continue
        share(source, out, ((step, args[1:], kwargs),), view=True)
        out._creation = creation or source._creation
        if not out._v.requires_grad and source.requires_grad:
            flag(out, True)


def share_strided(source: Any, out: Any, lens: Lens) -> Any:
    """Let `out` be a view of `source` that `lens` reads from the whole storage."""
    share(source, out, (), view=True)
    out._lens = out._blens = lens
    mode = local.mode
    creation = "inference" if mode.inference else "" if mode.grad else "no_grad"
    out._creation = creation or source._creation
    if not out._v.requires_grad and source.requires_grad:
        flag(out, True)
    return out


def flag(view: Any, requires_grad: bool) -> None:
    """A view without history requires grad as its base does; its gradient leads nowhere."""
    v = view._v
    kind = resting(v.aval, requires_grad, NOWHERE, v.inference, v.strides)
    if v.role or v.requires_grad == requires_grad or not is_differentiable(v.dtype):
        return
    if view._v.index >= 0 and view._trace is local.trace:
        view._v = tag(local.trace, view._v, kind)
        if id(view) in local.trace.entered:
            local.trace.entered[id(view)] = (ref(view), view._v)
    else:
        view._v = kind


def flag_views(base: Any) -> None:
    """Tell the views of `base` that its `requires_grad` changed."""
    if base._store is not None and base._base_ is None:
        for member in base._store.members:
            m = member()
            if m is not None and m._base_ is base and m._stale is None:
                if m._behind and base.requires_grad:
                    make_stale(m)
                else:
                    flag(m, base.requires_grad)


# ---------------------------------------------------------------- reading


def read(t: Any, trace: Trace) -> Value:
    """The value of a tensor that shares its storage, read through its lens."""
    old, base = t._stale, t._base_
    if old is not None and base is not None and (base.requires_grad or old.role > LEAF):
        return _regenerate(t, trace)
    t._stale = None
    value = _without_grad(lambda: _through(trace, t._store.cell, t._lens))
    own = t._vc is not t._store.vc  # `.data` counts its own versions
    if own:
        value = alias(trace, value, _plain(value), fresh=True)
        trace.versions[value.storage] = t._vc[0]
    if old is not None and old.index >= 0 and t._trace is trace and base is None:
        kind = old.resting
        if old.role == NODE:
            kind = value = keep_edge(trace, value, old)
        elif old.role == EXTERNAL and t._grad_fn is None:
            from ._graph import edge_of

            edge = edge_of(trace, old)
            assert edge is not None
            t._grad_fn, t._out = edge
        return tag(trace, value, kind, old.storage, _version(t, trace, old.storage))
    kind = t._v.resting
    if old is not None and base is not None and old.role != LEAF:
        kind = _plain(kind)
    return tag(trace, value, kind)


def _regenerate(t: Any, trace: Trace) -> Value:
    """The value of a view whose base has a new history, with its own from there."""
    mode = local.mode
    if t._creation:
        if mode.grad:
            raise RuntimeError(ambiguous(t, "its base or another view of its base has been"))
        return _through(trace, t._store.cell, t._lens)  # and it stays stale
    t._stale, t._behind = None, False
    local.set_mode(Mode.of(True, False, mode.autocast))
    try:
        value = enter(t._base_, trace)
        for op, args, kwargs in replayed(t._blens):
            value = record(op, (value, *args), kwargs, budget=False)[0].value
    finally:
        local.set_mode(mode)
    assert value is not None
    move_retain(t, value, trace)
    if t._grad_fn is not None:
        drop_grad_fn(t)
    return value


# What made a view ambiguous: what PyTorch adds to its error.
_ADVICE = {
    "multi": (
        "This view is the output of a function that returns multiple views. Such functions do "
        "not allow the output views to be modified inplace. You should replace the inplace "
        "operation by an out-of-place one."
    ),
    "function": (
        "This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."
    ),
}
_SCOPED = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {scope} block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)


def ambiguous(t: Any, what: str) -> str:
    """PyTorch's words for a view that may not be written to (or whose base may not)."""
    old = t._stale if t._stale is not None else t._v
    node = _maker(t, old)
    why = t._creation
    maker = f"Output {node[1]} of {node[0]}" if node else ""
    if why in ("no_grad", "inference") or not maker:
        begin = f"{maker} is a view of a view which was" if maker else "A view was"
        if why == "inference":
            begin += f" created in inference mode and {what} modified inplace in normal mode."
        else:
            begin += f" created in no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        begin = f"{maker} is a view and {what} modified inplace."
    scope = "inference_mode" if why == "inference" else "no_grad"
    return f"{begin} {_ADVICE.get(why) or _SCOPED.format(scope=scope)}"


def _maker(t: Any, value: Value) -> tuple[str, int] | None:
    from ._names import node_name
    from ._saved import short

    name = None
    if value.role == NODE and value.edge is not None:
        name, out = node_name(value.edge.state), value.edge.out
    elif value.role > LEAF:
        fn, out = t._grad_fn, t._out
        if fn is None and value.edge in local.trace.sources:
            source = local.trace.sources[value.edge]
            fn, out = source._grad_fn, source._out
        name = None if fn is None else type(fn).__name__
    return None if name is None else (short(name), out)


def _through(trace: Trace, cell: Any, lens: Lens) -> Value:
    value = enter(cell, trace)
    for op, args, kwargs in lens:
        value = record(op, (value, *args), kwargs, budget=False)[0].value
    return value


def _without_grad(fn: Callable[[], Any]) -> Any:
    mode = local.mode
    try:
        local.set_mode(Mode.of(False, mode.inference, mode.autocast))
        return fn()
    finally:
        local.set_mode(mode)


def _plain(value: Value) -> Value:
    """The kind of `value` without autograd."""
    return resting(value.aval, False, NOWHERE, value.inference)


def _version(t: Any, trace: Trace, storage: int) -> int:
    return int(t._vc[0]) - trace.versions.get(storage, 0)


def tag(
    trace: Trace, value: Value, kind: Value, storage: int | None = None, version: int = 0
) -> Value:
    """Step to a value with the number of `value`, the role of `kind` and this storage."""
    storage, version = (value.storage, value.version) if storage is None else (storage, version)
    same = kind.role == value.role and kind.requires_grad == value.requires_grad
    same = same and kind.inference == value.inference
    if same and storage == value.storage and version == value.version:
        return value
    key = ("tag", value, kind, storage, version)
    state = trace.state
    after = state.next.get(key)
    if after is None:
        after = State(state, None, state.mode)
        after.value = made = Value(
            value.index, value.aval, requires_grad=kind.requires_grad, role=kind.role,
            state=value.state, out=value.out, storage=storage, version=version,
            inference=kind.inference, strides=value.strides,
        )  # fmt: skip
        if kind.index >= 0:
            made.edge = kind.edge
        after.values = (made,)
        local.states += 1
        state.next[key] = after
    trace.state = after
    return after.value  # type: ignore[return-value]


# ---------------------------------------------------------------- writing


def rebind(t: Any, value: Value) -> None:
    """Let `t` hold `value` of the running trace from now on, as after a write."""
    trace = local.trace
    if t._grad_fn is not None:
        drop_grad_fn(t)
    t._v, t._trace, t._array, t._stale = value, trace, None, None
    trace.refs.append(ref(t))


def drop_grad_fn(t: Any) -> None:
    """`t` gets another history; what the running trace made of it keeps the old one."""
    sources = local.trace.sources
    for value, source in list(sources.items()):
        if source is t and value.role > LEAF:
            sources[value] = old = Handle()
            old._v, old._grad_fn, old._out = value, t._grad_fn, t._out
    t._grad_fn = None


def write(t: Any, value: Value, tracked: bool = False) -> None:
    """Write `value` (same shape and dtype) into `t`, for itself and all that share its storage.

    Args:
      tracked: `value` has a history that the write made; views go through `write_view` then.
    """
    trace = local.trace
    bump(t)
    store = t._store
    if tracked and t._retains:
        move_retain(t, value, trace)
    if store is None:
        rebind(t, value)
        return
    rebind(t, value)
    raw = alias(trace, value, _plain(value))
    _write_cell(trace, t, raw, t._lens)
    _outdate(store, t)
    t._behind = t._base_ is not None
    if repeats(t) or t._base_ is not None and (value.requires_grad or t._base_.requires_grad):
        make_stale(t)  # the version of its history is no longer the base's


# View ops whose result may hold one element several times.
REPEATING = frozenset({"expand", "broadcast_to", "as_strided", "unfold"})


def repeats(t: Any) -> bool:
    """Whether elements of `t` may share memory."""
    return any(op.name in REPEATING for op, _, _ in t._lens)


def write_view(t: Any, whole: Value) -> None:
    """After a recorded write through a view: `whole` is what its base now holds."""
    trace, base = local.trace, t._base_
    bump(t)
    if base._retains:
        move_retain(base, whole, trace)
    rebind(base, whole)
    _write_cell(trace, t, alias(trace, whole, _plain(whole)), base._lens)
    _outdate(t._store, base)


def _write_cell(trace: Trace, t: Any, raw: Value, lens: Lens) -> None:
    """Put `raw` at `lens` in the cell; versions go on counting as the cell's."""
    cell, store = t._store.cell, t._store
    old = enter(cell, trace)
    if lens:
        structure, flat = spell(lens)
        call = writer(structure, False)
        raw = _without_grad(lambda: record(call, (old, raw, *flat), {}, budget=False)[0].value)
    version = old.version + (1 if t._vc is store.vc else 0)
    rebind(cell, tag(trace, raw, raw, old.storage, version))


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
        from ._silent import note

        note(local.trace, store, [m for m in (r() for r in alive) if m is not None])


def _reread(t: Any) -> None:
    """Read a view anew whose version counter saw no write: its history stays."""
    trace = local.trace
    old = enter(t, trace)
    value = _without_grad(lambda: _through(trace, t._store.cell, t._lens))
    value = keep_edge(trace, value, old) if old.role else value
    history = t._grad_fn, t._out
    rebind(t, tag(trace, value, value if old.role else old, old.storage, old.version))
    t._grad_fn, t._out = history


def make_stale(t: Any) -> None:
    if t._stale is None:
        t._stale = t._v
    if t._base_ is not None:
        t._behind = True
    t._v, t._array = t._v.resting, None


def bump(t: Any) -> None:
    """Count a write in the version counter that `t` shares."""
    if t._vc is None:
        t._vc = [0]
    t._vc[0] += 1


def touch(t: Any) -> None:
    """Count a write that changed no values."""
    trace = local.trace
    value = enter(t, trace)
    bump(t)
    cell = t if t._store is None else t._store.cell
    for x in {id(t): t, id(cell): cell}.values():
        old = enter(x, trace)
        new = tag(trace, old, old, value.storage, value.version + 1)
        if old.role == LEAF:
            trace.sources[new] = x
        x._v = new
        if id(x) in trace.entered:
            trace.entered[id(x)] = (ref(x), new)


def move_retain(t: Any, value: Value, trace: Trace) -> None:
    """A tensor that retains its gradient does so at its new history from now on."""
    if t._retains and value.role == NODE and value.edge is not None:
        from ._graph import retain, unretain

        unretain(t)
        retain(t, value.edge, trace)


def detach(t: Any, own: bool = False) -> Any:
    """A tensor on the same storage without history; the pair of a later in-place write.

    Args:
      own: it counts its versions for itself, as `.data` does.
    """
    trace = local.trace
    if t._v.index < 0 and t._array is not None and t._store is None:
        out = from_array(t._array, inference=t._v.inference)
        out._v = resting(out._v.aval, False, NOWHERE, t._v.inference, t._v.strides)
    else:
        value = _without_grad(lambda: enter(t, trace))
        kind = _plain(value)
        out = make(alias(trace, value, kind, True) if own else tag(trace, value, kind), trace)
    if t._duals and out._v is t._v:
        out._v = keep_edge(trace, t._v, t._v)  # tangents are known by value
    share(t, out, (), view=False)
    if own:
        out._vc = [0]
    return out
