"""Entry of tensors into the running trace.

A tensor with an array enters as an input when it is first used. One that shares its storage is
read: through its lens, with the history that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.transformation import outside, transformation

from .._core.grad_modes import within
from .._core.gradient_graph import graph
from .._core.handle import Handle
from .._core.host_transfer import entering
from .._core.locks import running, sharing, wait_for
from .._core.trie import EXTERNAL, LEAF, NODE, NOWHERE, Mode, Trace, Value, local, resting
from .._core.view_ops import Lens, replayed
from .._tracing.inputs import (
    Source,
    add_input,
    enter_at_rest,
    held_by,
    refuse_lost,
)
from .._tracing.jax_transforms import enter_foreign, is_foreign
from .._tracing.leaf_tuples import mark_entered
from .._tracing.no_grad_views import AmbiguousView, ambiguous
from .._tracing.take import take
from .autograd_roles import alias, keep_edge, tag
from .own_memory import take_memory


def enter(t: Any, trace: Trace) -> Value:
    """Return the value of `t` in the running trace; make `t` an input if it is new there."""
    value = t._v
    if t._trace is trace and value.index >= 0:
        return value  # type: ignore[no-any-return]
    if is_foreign(t, trace):
        return enter_foreign(t, trace, add_input)
    if trace.inside is None and transformation() is not None:  # arrays are made on the way
        with outside():
            return enter(t, trace)
    with sharing:
        if running:
            wait_for(t)
        value = t._v
        if t._viewed is not None and t._trace is None and t._viewed[1] is not None:
            return _enter_view(t, trace)
        if t._trace is not None and t._trace.outcome.failure is not None and value.role == NODE:
            refuse_lost(t)
        known = trace.entered.get(id(t))
        if known is None and t._trace is None and not t._shares:
            if t._array is not None:
                return enter_at_rest(t, value.resting, trace)
        if known is not None and known[0]() is t and known[2] == held_by(t):
            same = known[1].resting is value.resting  # else its flag was changed elsewhere
            if same and (t._array is not None or not t._shares):
                if t._trace is None and not value.role:
                    mark_entered(t, known[1], trace)
                return known[1]  # type: ignore[no-any-return]
        if t._trace is not None and t._trace is not trace and not t._trace.outcome.done:
            _taken(t)
        edge = _edge_elsewhere(t) if t._trace is not None and value.role > LEAF else None
        if t._shares and t._store is not None and not take_memory(t):
            if edge is not None:  # it moves to this trace
                t._node, t._out = edge
            value = read(t, trace)
            if t._stale is not None:  # it may not be used where gradients are recorded
                return value
        else:
            array = t._array
            if array is None:
                array = local.runner.compute_elsewhere(t)
            elif type(array) is np.ndarray:
                array = entering(t)
            value = add_input(trace, t._v.resting, array)
            if t._vc is not None:
                trace.versions[value.storage] = t._vc[0]
        if value.role and value.role != NODE:
            # A leaf's gradient goes to itself; of others the graph only needs the edge.
            if edge is None and t._node is not None:
                edge = t._node, t._out
            trace.sources[value] = t if value.role == LEAF or edge is None else Source(*edge)
        trace.entered[id(t)] = (ref(t), value, held_by(t))
        if t._array is not None or t._store is not None:
            t._trace = None
            t._v, t._trace = value, trace
            trace.memory.viewed |= t._shares
            trace.refs.append(ref(t))
        return value


def values_of(x: Any, trace: Trace) -> Any:
    """Replace the tensors among arguments by their values in the trace."""
    if isinstance(x, Handle):
        return enter(x, trace)
    if type(x) is tuple or type(x) is list:
        return type(x)([values_of(y, trace) for y in x])
    if isinstance(x, dict):
        return {name: values_of(y, trace) for name, y in x.items()}
    return x


def see(value: Value, op: Any, args: Any, kwargs: Any, trace: Trace) -> Value:
    """Step to the result of a view op on a value; its other arguments may be tensors."""
    return take(trace, op, (value, *values_of(args, trace)), values_of(kwargs, trace)).value


def enter_all(tensors: Iterable[Any], trace: Trace) -> list[Value]:
    """Enter several tensors into the trace under one lock, and return their values."""
    with sharing:
        return [t._v if t._v.index >= 0 and t._trace is trace else enter(t, trace) for t in tensors]


def _enter_view(t: Any, trace: Trace) -> Value:
    """Enter a view of a tensor at rest that no program knows, and keep it a view of it there."""
    root, lens = t._viewed
    value = root._v
    if root._trace is not trace or value.index < 0:
        if root._trace is None and id(root) not in trace.entered:
            value = enter_at_rest(root, value.resting, trace)
        else:
            value = enter(root, trace)
    if t._viewed is None:  # they share a storage now
        return enter(t, trace)
    for op, args, kwargs in lens:
        value = see(value, op, args, kwargs, trace)
    t._v, t._trace = value, trace
    trace.memory.viewed = True
    trace.refs.append(ref(t))
    return value


def _taken(t: Any) -> None:
    """Give another thread's trace, which `t` leaves, a version counter to see later writes."""
    value, trace = t._v if t._stale is None else t._stale, t._trace
    if value.index >= 0:
        if t._vc is None:
            t._vc = [0]
        if trace.memory.elsewhere is None:
            trace.memory.elsewhere = {}
        trace.memory.elsewhere[value.storage] = t._vc
        trace.graph.hooked += 1  # a remembered backward looks at no counter


def _edge_elsewhere(t: Any) -> Any:
    """Return where the gradient of `t` goes, if another thread has `t` pending; else None.

    What this thread records later must not change it.
    """
    value = t._v if t._stale is None else t._stale
    if t._trace is None or t._trace.outcome.done or t._trace is local.trace or value.index < 0:
        return None
    if t._stale is not None and t._base_ is not None:  # its history is made anew from its base
        return None
    return graph.edge_of(t._trace, value)


def read(t: Any, trace: Trace) -> Value:
    """Read a tensor that shares its storage through its lens, and return the value."""
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
    """Make the value of a view anew, with its own history from its base's new one."""
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
            value = see(value, op, args, kwargs, trace)
    assert value is not None
    move_retain(t, value, trace)
    if t._node is not None:
        drop_grad_fn(t)
    return value


def was_leaf(t: Any) -> bool:
    """Return whether a view had no history when its base got one, and has not asked since.

    PyTorch takes it for a leaf then; one that was written through has its history at once.
    """
    if t._stale is None or t._store is None:
        return False
    return t._stale.role <= LEAF and id(t) not in t._store.written


def through(trace: Trace, cell: Any, lens: Lens) -> Value:
    value = enter(cell, trace)
    for op, args, kwargs in lens:
        value = see(value, op, args, kwargs, trace)
    return value


def without_grad(fn: Callable[[], Any]) -> Any:
    mode = local.mode
    with within(Mode.of(False, mode.inference, mode.autocast)):
        return fn()


def plain_kind(value: Value) -> Value:
    """Return the kind of `value` without autograd."""
    return resting(value.aval, False, NOWHERE, value.inference)


def _version(t: Any, trace: Trace, storage: int) -> int:
    return int(t._vc[0]) - trace.versions.get(storage, 0)


def drop_grad_fn(t: Any) -> None:
    """Take `t` off its history; values that the running trace made of `t` keep the old one."""
    sources = local.trace.sources
    for value, source in list(sources.items()):
        if source is t and value.role > LEAF:
            sources[value] = old = Handle()
            old._v, old._node, old._out = value, t._node, t._out
    t._node = None


def move_retain(t: Any, value: Value, trace: Trace) -> None:
    """Move a retained gradient's mark to the tensor's new history."""
    if t._retains and value.role == NODE and value.edge is not None:
        graph.unretain(t)
        graph.retain(t, value.edge, trace)
    elif t._retains and value.role == EXTERNAL:
        graph.retain_at(t, *graph.edge_of(trace, value))
