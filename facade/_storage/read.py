"""Reading a tensor that shares its storage: through its lens, with the history that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.grad_modes import within
from .._core.gradient_graph import graph
from .._core.handle import Handle
from .._core.trie import EXTERNAL, LEAF, NODE, NOWHERE, Mode, Trace, Value, local, resting
from .._core.view_ops import Lens, replayed
from .._tracing.inputs import enter
from .._tracing.no_grad_views import AmbiguousView, ambiguous
from .._tracing.record import record
from .autograd_roles import alias, keep_edge, tag


def read(t: Any, trace: Trace) -> Value:
    """The value of a tensor that shares its storage, read through its lens."""
    old, base = t._stale, t._base_
    if old is not None and base is not None and (base._tracked or old.role > LEAF):
        return _regenerate(t, trace)
    t._stale = None
    value = without_grad(lambda: through(trace, t._store.cell, t._lens))
    own = t._vc is not t._store.vc  # `.data` counts its own versions
    if own:
        value = alias(trace, value, plain_kind(value), fresh=True)
        trace.versions[value.storage] = t._vc[0]
    if old is not None and old.index >= 0 and t._trace is trace and base is None:
        kind = old.resting
        if old.role == NODE:
            kind = value = keep_edge(trace, value, old)
        elif old.role == EXTERNAL and t._node is None:
            edge = graph.edge_of(trace, old)
            assert edge is not None
            t._node, t._out = edge
        return tag(trace, value, kind, old.storage, _version(t, trace, old.storage))
    kind = t._v.resting
    if old is not None and base is not None and old.role != LEAF:
        kind = plain_kind(kind)
    return tag(trace, value, kind)


def _regenerate(t: Any, trace: Trace) -> Value:
    """The value of a view whose base has a new history, with its own from there."""
    mode, old = local.mode, t._stale
    if t._creation:
        if mode.grad:
            raise AmbiguousView(ambiguous(t, "its base or another view of its base has been"))
        return through(trace, t._store.cell, t._lens)  # and it stays stale
    if not mode.grad and was_leaf(t):  # nobody asks for its history
        return through(trace, t._store.cell, t._lens)
    t._stale, t._behind = None, False
    with within(Mode.of(True, False, mode.autocast)):
        value = enter(t._base_, trace)
        if not value.requires_grad and old.role > LEAF:
            # `detach_()` cut the base off: the view gets a node all the same, which ends there.
            kind = resting(value.aval, True, NOWHERE, value.inference, value.strides)
            value = tag(trace, value, kind)
        for op, args, kwargs in replayed(t._blens):
            value = record(op, (value, *args), kwargs, budget=False)[0].value
    assert value is not None
    move_retain(t, value, trace)
    if t._node is not None:
        drop_grad_fn(t)
    return value


def was_leaf(t: Any) -> bool:
    """Whether the view `t` had no history when its base got one, and did not ask since.

    PyTorch takes it for a leaf then; one that was written through has its history at once.
    """
    if t._stale is None or t._store is None:
        return False
    return t._stale.role <= LEAF and id(t) not in t._store.written


def through(trace: Trace, cell: Any, lens: Lens) -> Value:
    value = enter(cell, trace)
    for op, args, kwargs in lens:
        value = record(op, (value, *args), kwargs, budget=False)[0].value
    return value


def without_grad(fn: Callable[[], Any]) -> Any:
    mode = local.mode
    with within(Mode.of(False, mode.inference, mode.autocast)):
        return fn()


def plain_kind(value: Value) -> Value:
    """The kind of `value` without autograd."""
    return resting(value.aval, False, NOWHERE, value.inference)


def _version(t: Any, trace: Trace, storage: int) -> int:
    return int(t._vc[0]) - trace.versions.get(storage, 0)


def drop_grad_fn(t: Any) -> None:
    """`t` gets another history; what the running trace made of it keeps the old one."""
    sources = local.trace.sources
    for value, source in list(sources.items()):
        if source is t and value.role > LEAF:
            sources[value] = old = Handle()
            old._v, old._node, old._out = value, t._node, t._out
    t._node = None


def move_retain(t: Any, value: Value, trace: Trace) -> None:
    """A tensor that retains its gradient does so at its new history from now on."""
    if t._retains and value.role == NODE and value.edge is not None:
        graph.unretain(t)
        graph.retain(t, value.edge, trace)
    elif t._retains and value.role == EXTERNAL:
        graph.retain_at(t, *graph.edge_of(trace, value))
