"""Shared storage: views, detached tensors, and what a write through one does to the others.

Values are immutable, so sharing is bookkeeping. A `Storage` has a *cell*, a tensor without
autograd that always holds the whole data, and members that read it through lenses: a member's
lens is the view ops from the cell to it (none for the base and for detached tensors). Writing
through a member writes the cell and makes the others stale; a stale member is read anew when it
is next used, so nothing is paid for views that nobody looks at again. A version counter, shared
by all members, counts the writes.

Autograd follows PyTorch: a write through a view in grad mode gives its base a new history (the
written part from the view's new value, the rest from the base's old one), and the other views
of that base get theirs from it. Written behind autograd's back (no_grad, detached), a tensor
keeps its edge and only the data changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import ref

import jax.numpy as jnp

from leafax.functional import Op, cast, category, scalar_name

from ._record import alias, enter, from_array, keep_edge, make, record
from ._trace import NODE, NOWHERE, Mode, Trace, Value, local, resting

Lens = tuple[tuple[Op, tuple[Any, ...], dict[str, Any]], ...]


class Storage:
    """The cell and the tensors that read it."""

    __slots__ = ("cell", "members", "vc")

    def __init__(self, cell: Any, vc: list[int]) -> None:
        self.cell, self.vc = cell, vc
        self.members: list[ref[Any]] = []


def storage_of(t: Any) -> Storage:
    """The tensor's shared storage; made when the first sharer appears."""
    if t._store is None:
        if t._vc is None:
            t._vc = [0]
        trace = local.trace
        if t._array is not None:
            cell = from_array(t._array)
            cell._vc = t._vc
            if t._trace is trace and t._v.index >= 0:
                cell._v, cell._trace = alias(trace, t._v, cell._v), trace
                trace.entered[id(cell)] = (ref(cell), cell._v)
                trace.refs.append(ref(cell))
        else:
            value = enter(t, trace)
            cell = make(alias(trace, value, _plain(value)), trace)
        t._store = Storage(cell, t._vc)
        t._store.members.append(ref(t))
    return t._store  # type: ignore[no-any-return]


def unshare(t: Any) -> None:
    """Give a resting tensor its storage back once all that shared it are gone."""
    store = t._store
    if t is store.cell or t._stale is not None or store.cell._array is None:
        return
    if all(m() is None or m() is t for m in store.members):
        t._array, t._store = store.cell._array, None


def share(source: Any, out: Any, lens: Lens, *, view: bool) -> Any:
    """Let `out` share the storage of `source`, seen through `lens`; as its view, or detached."""
    store = storage_of(source)
    out._store, out._vc = store, store.vc
    out._lens = source._lens + lens
    if view:
        out._base_ = source if source._base_ is None else source._base_
        out._blens = source._blens + lens
        out._made_no_grad = not local.mode.grad or source._made_no_grad
    store.members.append(ref(out))
    return out


def share_views(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], outs: list[Any]) -> None:
    """Tie the results of a view op to its first argument."""
    source = args[0]
    for k, out in enumerate(outs):
        step = op if len(outs) == 1 else _pick(op, k)
        share(source, out, ((step, args[1:], kwargs),), view=True)
        out._multi_view = source._multi_view or len(outs) > 1


@lru_cache(maxsize=None)
def _pick(op: Op, k: int) -> Op:
    """One output of a view op that has several, as an op of its own."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        return op.fn(*args, **kwargs)[k]

    return Op(fn, name=op.name, backward=op.backward, view=True)


@lru_cache(maxsize=None)
def _writer(op: Op) -> Op:
    """`(base, new, *rest) -> base` with what the view op sees replaced by `new`."""

    def generic(base: Any, new: Any, *args: Any, **kwargs: Any) -> Any:
        places = op.fn(jnp.arange(base.size).reshape(base.shape), *args, **kwargs)
        flat = base.reshape(-1).at[places.reshape(-1)].set(new.reshape(-1))
        return flat.reshape(base.shape)

    return Op(op.write or generic, name="copy_slices", backward="CopySlices")


def read(t: Any, trace: Trace) -> Value:
    """The value of a tensor that shares its storage, read through its lens."""
    old = t._stale
    base = t._base_
    t._stale = None
    if old is not None and base is not None and not t._made_no_grad and base.requires_grad:
        value = enter(base, trace)
        for op, args, kwargs in t._blens:
            value = record(op, (value, *args), kwargs, budget=False)[0].value
        return value
    value = _without_grad(lambda: _through(trace, t._store.cell, t._lens))
    if old is not None and old.index >= 0 and old.role == NODE and base is None:
        return keep_edge(trace, value, old)
    kind = t._v.resting
    if old is not None and base is not None:
        kind = _plain(kind)
    return alias(trace, value, kind)


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


def rebind(t: Any, value: Value) -> None:
    """Let `t` hold `value` of the running trace from now on, as after a write."""
    trace = local.trace
    t._v, t._trace, t._array, t._stale = value, trace, None, None
    t._grad_fn = None
    trace.refs.append(ref(t))


def write(t: Any, value: Value) -> None:
    """Write `value` (same shape and dtype) into `t`, for itself and all that share its storage."""
    trace = local.trace
    bump(t)
    store = t._store
    if store is None:
        rebind(t, value)
        return
    base = t if t._base_ is None else t._base_
    tracked = local.mode.grad and (value.requires_grad or base.requires_grad)
    if t is base:
        rebind(t, value)
        raw = alias(trace, value, _plain(value))
        if t._lens:
            raw = _without_grad(lambda: _write_through(trace, store.cell, t._lens, raw))
    elif tracked:
        rebind(base, _write_through(trace, base, t._blens, value))
        whole = alias(trace, base._v, _plain(base._v))
        raw = whole
        if base._lens:
            raw = _without_grad(lambda: _write_through(trace, store.cell, base._lens, whole))
        rebind(t, value)
    else:
        plain = alias(trace, value, _plain(value))
        raw = _without_grad(lambda: _write_through(trace, store.cell, t._lens, plain))
        rebind(t, value)
    rebind(store.cell, raw)
    skip = {id(t), id(base)} if tracked else {id(t)}
    alive = []
    for member in store.members:
        m = member()
        if m is None:
            continue
        alive.append(member)
        if id(m) not in skip:
            make_stale(m)
    if tracked and t is not base:
        make_stale(t)  # its history now starts from the base's
    store.members[:] = alive


def make_stale(t: Any) -> None:
    if t._stale is None:
        t._stale = t._v
    t._v, t._array = t._v.resting, None


def _write_through(trace: Trace, whole: Any, lens: Lens, value: Value) -> Value:
    """`whole` with the part that `lens` sees replaced by `value`."""
    parts = [enter(whole, trace)]
    for op, args, kwargs in lens[:-1]:
        parts.append(record(op, (parts[-1], *args), kwargs, budget=False)[0].value)
    for (op, args, kwargs), part in zip(reversed(lens), reversed(parts), strict=True):
        value = record(_writer(op), (part, value, *args), kwargs, budget=False)[0].value
    return value


def bump(t: Any) -> None:
    """Count a write in the version counter that `t` shares."""
    if t._vc is None:
        t._vc = [0]
    t._vc[0] += 1


@lru_cache(maxsize=None)
def inplace_of(op: Op) -> Op:
    """The in-place variant of an op: the result takes the first input's shape and dtype."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        out = op.fn(*args, **kwargs)
        self = args[1] if op.random else args[0]
        if out.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(out.shape)}"
            )
        if category(out.dtype) > category(self.dtype):
            raise RuntimeError(
                f"result type {scalar_name(out.dtype)} can't be cast to the desired output type "
                f"{scalar_name(self.dtype)}"
            )
        return cast(out, self.dtype)

    fn.__signature__ = op.signature  # type: ignore[attr-defined]
    return Op(
        fn, name=op.name, namespace=op.namespace, backward=op.backward, saves=op.saves,
        differentiable=op.differentiable, numbers=op.numbers, check=op.check, random=op.random,
        residuals=op.residuals, overwrites=True,
    )  # fmt: skip


def check_inplace(t: Any) -> None:
    """Raise PyTorch's error where it forbids writing to `t` in this mode."""
    if not local.mode.grad:
        if t._v.inference and not local.mode.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
                "make a clone to get a normal tensor before doing inplace update.See "
                "https://github.com/pytorch/rfcs/pull/17 for more details."
            )
        return
    if t.requires_grad and t.is_leaf and t._base_ is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    base = t._base_
    if base is not None and base.requires_grad and base.is_leaf:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def apply_inplace(op: Op, t: Any, *args: Any, _key: Any = None, **kwargs: Any) -> Any:
    """Record the in-place variant of `op` on `t` and write its result; returns `t`."""
    check_inplace(t)
    before = () if _key is None else (_key,)
    state, trace = record(inplace_of(op), (*before, t, *args), kwargs)
    value = state.value
    assert value is not None
    old = t._v
    if old.requires_grad and not value.requires_grad:
        value = keep_edge(trace, value, old)
        if value.edge in trace.sources:
            trace.sources[value] = t
    write(t, value)
    return t


def detach(t: Any) -> Any:
    """A tensor on the same storage without history; the pair of a later in-place write."""
    trace = local.trace
    if t._v.index < 0 and t._array is not None and t._store is None and not t._v.requires_grad:
        out = from_array(t._array)
    else:
        value = enter(t, trace)
        out = make(alias(trace, value, _plain(value), fresh=False), trace)
    return share(t, out, (), view=False)


