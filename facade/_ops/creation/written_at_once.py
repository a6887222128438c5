"""Whole tensors written without a program: what loading and copying models would compile for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax

from leafax.functional.program.meta import META

from ..._core.handle import Handle
from ..._core.host_transfer import placed
from ..._core.locks import sharing
from ..._core.trie import LEAF, local, resting
from ..._runtime.cut import cut
from ..._storage.write import bump
from ..._tracing.inputs import from_array
from ..._tracing.preparations import has_graph


def let_rest(tensors: Iterable[Any], reason: str) -> None:
    """Cut where one of the tensors is pending, so that what comes next is a program of its own."""
    trace = local.trace
    if trace.inside is not None or local.vmap is not None or local.cuts.uncut:
        return
    for t in tensors:
        if "_v" in t.__dict__ and t._array is None and t._v.index >= 0 and t._trace is trace:
            cut(reason)
            return


def begin_program(parameters: Iterable[Any], reason: str) -> None:
    """Cut where nothing is in a graph yet, or a parameter is pending: a loop begins here."""
    trace = local.trace
    cuts = local.cuts
    if trace.state.nodes == 0 or trace.inside is not None or cuts.uncut or cuts.capture is not None:
        return
    if local.vmap is None and not has_graph(trace.state):
        cut(reason)
    else:
        let_rest(parameters, reason)


def array_of(t: Any) -> Any:
    """Return the JAX array that is all of a tensor at rest, row by row; None for others."""
    v = t._v
    if v.device is META or t._array is None or t._shares or t._stale is not None or t._duals:
        return None
    if v.strides is not None or v.inference or local.mode.inference or local.vmap is not None:
        return None
    return t._array if isinstance(t._array, jax.Array) else placed(t)


def values_of(t: Any) -> Any:
    """Make a tensor on the array of `t` that shares nothing else; None unless `t` is at rest."""
    if not isinstance(t, Handle) or "_v" not in t.__dict__:  # an uninitialized one has none
        return None
    array = array_of(t)
    return None if array is None else from_array(array)


def copy_of(t: Any) -> Any:
    """Return a tensor with these values in memory of its own, without history."""
    array = array_of(t)
    if array is None:
        return t.data.clone()
    return from_array(_apart(array))


def write_at_once(t: Any, source: Any) -> bool:
    """Give `t` the values of `source` and count the write; return False if that takes a program."""
    array = array_of(source)
    if array is None or source is t or array.shape != tuple(t._v.shape):
        return False
    if array.dtype != t._v.dtype or local.mode.grad and t.requires_grad:
        return False
    if t._v.device is META or t._v.inference or t._v.strides is not None:
        return False
    if t._duals or t._stale is not None:
        return False
    with sharing:
        if t._shares or t._node is not None or t._v.role > LEAF:
            return False
        if t._array is None and t._trace is not local.trace:
            return False
        if isinstance(t._array, jax.Array) and t._array.sharding != array.sharding:
            return False
        bump(t)
        v = t._v
        local.trace.entered.pop(id(t), None)
        t._v = resting(v.aval, v.requires_grad, v.role, v.inference, v.strides)
        t._trace, t._array = None, _apart(array)
    return True


def _apart(array: Any) -> Any:
    """Return the values in other memory: arrays held twice could not be donated."""
    with jax.enable_x64(True):
        return jax.device_put(array, array.sharding if array.committed else None, may_alias=False)
