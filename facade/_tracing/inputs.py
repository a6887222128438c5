"""Inputs of the running trace, and tensors on its values.

A tensor with an array enters as an input when it is first used; one that shares its storage is
read through its lens; `alias` and `keep_edge` give a value another role in autograd.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.program import Aval, Input
from leafax.functional.program.transformation import transformation

from .._core.handle import Handle
from .._core.host_transfer import entering
from .._core.jax_devices import committed_to, places
from .._core.trie import LEAF, NOWHERE, State, Trace, Value, local, resting
from .jax_transforms import new_tensor

_ndarray = np.ndarray
_tensor_class: Any = Handle


def register(cls: type) -> None:
    """Tell the recorder which class its results are."""
    global _tensor_class
    _tensor_class = cls


class Source:
    """Where the gradient of an EXTERNAL value goes; stands among a trace's sources."""

    __slots__ = ("_node", "_out")
    _grad = _v = None

    def __init__(self, node: Any, out: int) -> None:
        self._node, self._out = node, out


def make(value: Value, trace: Trace) -> Any:
    """Make a new tensor on a value of the running trace."""
    out = object.__new__(_tensor_class)
    out._v = value
    out._trace = trace
    trace.refs.append(ref(out))
    return out


def from_array(array: Any, *, requires_grad: bool = False, inference: bool = False) -> Any:
    """Make a new resting tensor on a JAX array."""
    if transformation() is not None:
        return new_tensor(array, requires_grad, inference, make, add_input)
    out = object.__new__(_tensor_class)
    out._array = array
    where = committed_to(array) if places.matter else None
    aval = Aval(array.shape, array.dtype, False, where)
    out._v = resting(aval, requires_grad, LEAF if requires_grad else NOWHERE, inference)
    out._trace = None
    return out


def refuse_lost(t: Any) -> None:
    """Raise where gradients are recorded and the graph of `t` is lost, for its program failed."""
    if local.mode.grad:
        error = RuntimeError(
            "the graph of this tensor is lost: the program that recorded it failed with "
            f"{type(t._trace.outcome.failure).__name__}. Its value is there (`detach()`); to "
            "differentiate it, compute it again."
        )
        raise error from t._trace.outcome.failure


def rests(t: Any, trace: Trace) -> bool:
    """Return whether a tensor is in no trace, never was in this one, and has its own array."""
    at_rest = trace.inside is None and t._trace is None and t._array is not None and not t._shares
    return at_rest and id(t) not in trace.entered


def enter_at_rest(t: Any, kind: Value, trace: Trace) -> Value:
    """Enter a tensor that is in no trace and has its own array: the usual case of `enter`."""
    state = trace.state.next.get(kind)
    value: Value = step_to_input(trace, kind) if state is None else state.value
    trace.state = value.state
    trace.nbytes += kind.nbytes
    put(t, value, trace)
    return value


def put(t: Any, value: Value, trace: Trace) -> None:
    """Make a tensor at rest the input for this value, which the trace has just stepped to."""
    held = array = t._array
    if type(array) is _ndarray:
        array = entering(t)
        held = t._array
    trace.arrays.append(array)
    counter = t.__dict__.get("_vc")  # by the attribute a tensor with views would get a storage
    if counter is not None:
        trace.versions[value.storage] = counter[0]
    role = value.role
    if role:
        leads = role == LEAF or t._node is None
        trace.sources[value] = t if leads else Source(t._node, t._out)
    me = ref(t)
    trace.entered[id(t)] = (me, value, id(held))
    t._v = value
    t._trace = trace
    trace.refs.append(me)


def held_by(t: Any) -> Any:
    """Return the array that `t` is or reads from; the trace that it entered keeps it alive.

    Of what another thread has pending its value in that trace (a later one may come to the same
    value with other data): it is computed once.
    """
    if t._shares and t._store is not None:
        return id(t._store.cell._array)
    if t._array is not None:
        return id(t._array)
    trace = t._trace
    return object() if trace is None else (trace.graph.serial, t._v)


def note_entry(trace: Trace, t: Any, value: Value) -> None:
    """Remember that `t` entered the trace as `value`, so that another thread enters it once.

    Not if it holds something else by then: the other thread wrote to it.
    """
    trace.entered[id(t)] = (ref(t), value, held_by(t))


def renew_entry(trace: Trace, t: Any, value: Value) -> None:
    """Note `value` as the entry of `t` from now on, if `t` entered the trace."""
    if id(t) in trace.entered:
        note_entry(trace, t, value)


def add_input(trace: Trace, kind: Value, array: Any) -> Value:
    """Step to an `Input` of this kind (a resting value)."""
    after = trace.state.next.get(kind)
    value: Value = step_to_input(trace, kind) if after is None else after.value
    trace.state = value.state
    trace.arrays.append(array)
    trace.nbytes += kind.nbytes
    return value


def step_to_input(trace: Trace, kind: Value) -> Value:
    """Step to an `Input` of this kind that was not met here before; return its value."""
    state = trace.state
    after = State(state, _input_of(kind), state.mode)
    value = Value(
        after.count, kind.aval, requires_grad=kind.requires_grad, role=kind.role, state=after,
        inference=kind.inference, strides=kind.strides,
    )  # fmt: skip
    after.value, after.values = value, (value,)
    after.count += 1
    after.where = None
    local.trie.states += 1
    state.next[kind] = after
    return value


@cache
def _input_of(kind: Value) -> Input:
    """Return the entry of the inputs of a kind, the same for all."""
    return Input(kind.aval)


def list_inputs(trace: Trace) -> list[Value]:
    """List the values of the trace's inputs so far, in order."""
    return [s.value for s in trace.state.path() if type(s.entry) is Input]


NUMBER = {
    float: resting(Aval((), np.dtype("float64"), True)),
    int: resting(Aval((), np.dtype("int64"), True)),
}
