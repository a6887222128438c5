"""Recording: the one door through which every op goes.

`apply` is the door for ops on tensors. It forms the step's key, looks it up in the trie, and on
a hit makes the result's handle; on a miss it infers shapes, makes the state and its values, and
goes on. `_ops/calls/operators_fast.py` has the same hit path written out for the commonest ops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.op import Op

from .._core.dtypes import dtype as dtype_class
from .._core.grad_modes import within
from .._core.handle import Handle
from .._core.locks import sharing
from .._core.trie import Mode, State, Trace, local
from .._host.compute import arrays_of, computed
from .._storage.enter import enter, values_of
from .._storage.pending_views import view
from .._tracing.inputs import make
from .._tracing.inputs import register as _register
from .._tracing.loop_cuts import BUDGET, BUDGET_BYTES, cut_for_budget, over_budget
from .._tracing.miss import StaticArray, miss, number_part, with_ints
from .._tracing.miss import key_part as key_part_by
from .._tracing.no_grad_views import AmbiguousView
from .._tracing.novelty import Doers, unrepeated
from .._tracing.number_calls import NumberCall
from .._tracing.preparations import REASON, prepared_anew
from .._tracing.tracer_checks import refuse_arrays
from . import known_calls
from .check_call import look_first

# Named arguments of these types are the same in a key as the caller wrote them.
_IN_KEYS = frozenset({int, bool, float, str, tuple, type(None)})

key_part = partial(key_part_by, enter=enter)  # how an argument stands in a key

_tensor_class: Any = Handle  # what results are; `register` says
_parameter_class: Any = Handle  # taken for operands as quickly; a class of its own for `nn`
_share_views: Any = None

# Gives the result of a view op that is no plain view, or None; `strided_views.py` sets it.
view_or_copy: Any = None

# Ops that PyTorch makes of several: what records those, or returns None; see `_ops/composites/`.
composed: dict[Op, Callable[[Any, Any], Any]] = {}


def register(cls: type, share_views: Callable[..., None]) -> None:
    """Tell the recorder the class of its results, and the function that ties views to bases."""
    global _tensor_class, _share_views
    _tensor_class, _share_views = cls, share_views
    _register(cls)
    known_calls.register(tensor=cls)


def register_parameters(cls: type) -> None:
    """Tell the recorder which class modules' parameters are."""
    global _parameter_class
    _parameter_class = cls
    known_calls.register(parameter=cls)


def apply(op: Op, *args: Any, **kwargs: Any) -> Any:
    """Record `op` on tensors, numbers and static arguments; return its result's tensors.

    Raises what the op's body raises for these shapes and dtypes, at the user's line.
    """
    try:
        return _applied(op, args, kwargs)
    except StaticArray:
        if args and isinstance(args[0], np.ndarray) and op.parameters:
            raise TypeError(
                f"{op.name.rpartition('.')[2]}(): argument '{op.parameters[0]}' (position 1) must "
                "be Tensor, not numpy.ndarray"
            ) from None
        return _applied(op, with_ints(args), with_ints(kwargs))


def _applied(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        out = known(op, args, kwargs)
    except AmbiguousView:
        look_first(op, args, kwargs)
        if op.differentiable and not (op.name == "_to_copy" and not is_differentiable(args[1])):
            raise
        return _without_grad(op, args, kwargs)
    if out is not None:
        return out
    compose = composed.get(op)
    if compose is not None:
        out = compose(args, kwargs)
        if out is None and isinstance(args[0], Handle) and args[0]._v.index < 0:
            out = computed(op, args, kwargs)
        if out is not None:
            return out
    if op.view:
        if args[0]._lens or args[0]._v.strides is not None or local.vmap is not None:
            copy = view_or_copy(op, args[0], args[1:], kwargs)
            if copy is not None:
                return copy
        with sharing:  # what is viewed is read, and tied to its views, in one go
            return results(op, args, kwargs, *record(op, args, kwargs))
    return results(op, args, kwargs, *record(op, args, kwargs))


def _without_grad(op: Op, args: Any, kwargs: Any) -> Any:
    """Record an op that autograd takes no part in, and does not ask views for their history."""
    mode = local.mode
    local.set_mode(Mode.of(False, mode.inference, mode.autocast))
    try:
        return apply(op, *args, **kwargs)
    finally:
        local.set_mode(mode)


def results(op: Op, args: Any, kwargs: Any, state: State, trace: Trace) -> Any:
    """Make the tensors of a step that `record` took."""
    if state.call.many:
        outs = [make(v, trace) for v in state.values]
        if op.view:
            _share_views(op, args, kwargs, outs)
        elif type(state) is not State:
            _tie(state, outs)
        return state.call.wrap(*outs) if state.call.wrap is not None else tuple(outs)
    if op.view:
        out = view(op, args, kwargs, state, trace)
        if out is None:
            out = make(state.value, trace)
            _share_views(op, args, kwargs, [out])
        return out
    out = make(state.value, trace)
    if type(state) is not State:
        _tie(state, [out])
    return out


def _tie(state: Any, outs: list[Any]) -> None:
    """Share memory between results under saved-tensor hooks and what these hold of them."""
    tie = getattr(state, "tie", None)
    if tie is not None:
        tie(outs)


def known(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Return the result of a step that was seen before, or None.

    `record` without its function calls, each of which costs a microsecond or more when a step's
    computation has just swept the caches.
    """
    trace = local.trace
    if trace.nbytes > BUDGET_BYTES or trace.state.nodes >= (local.budget or BUDGET):
        return None
    parts: list[Any] = [op]
    for a in args:
        kind = type(a)
        if kind is _tensor_class or kind is _parameter_class:
            v = a._v
            if v.index >= 0 and a._trace is trace:
                parts.append(v)
                continue
            if len(parts) == 1 and not v.requires_grad and v.index < 0:
                if op not in composed:
                    out = computed(op, args, kwargs)
                    if out is not None:
                        return out
                elif arrays_of(op, args, kwargs) is not None:
                    return None  # what it is composed of is computed at once
            if unrepeated and len(parts) == 1 and op not in composed:
                out = Doers.op(op, args, kwargs)
                if out is not None:
                    return out
            if a._stale is None or op.differentiable:
                parts.append(enter(a, trace))
            else:
                return None
        elif (kind is int or kind is float) and a:
            parts.append(kind)
            parts.append(a)
        elif a is None or kind is str or isinstance(a, np.dtype):
            parts.append(a)
        elif kind is int:
            parts.append(int)
            parts.append("0")
        elif kind is bool or kind is float:
            parts.append(kind)
            parts.append(number_part(a))
        elif kind is tuple:
            try:
                parts.append(key_part(a, trace))
            except StaticArray:  # `apply` knows more of it
                return None
        else:
            return None
    if kwargs:
        for name, a in kwargs.items():
            kind = type(a)
            parts.append(name)
            if kind in _IN_KEYS or kind is _tensor_class or kind is _parameter_class:
                parts.append(key_part(a, trace))
            elif kind is dtype_class and not op.view:
                parts.append(a.np)
            else:
                return None
    state = trace.state.next.get(tuple(parts))
    if state is None:
        return None
    if op.view:
        out = view(op, args, kwargs, state, trace)
        if out is not None:
            trace.state = state
        return out
    if state.call.many:
        trace.state = state
        return results(op, args, kwargs, state, trace)
    trace.state = state
    out = object.__new__(_tensor_class)
    out._v = state.value
    out._trace = trace
    trace.refs.append(ref(out))
    return out


def _is_stale(x: Any) -> bool:
    return (type(x) is _tensor_class or type(x) is _parameter_class) and x._stale is not None


def record(op: Op, args: Any, kwargs: Any, budget: bool = True) -> tuple[State, Trace]:
    """Step over one op, for callers that make the handles themselves; `apply` builds on it.

    Args:
      budget: whether the trace may be cut here for its length. Operands that are values (not
        tensors) would not survive that.
    """
    if budget and over_budget(local.trace):
        cut_for_budget(local.trace)
    if not op.differentiable and local.mode.grad and any(map(_is_stale, args)):
        with within(Mode.of(False, local.mode.inference, local.mode.autocast)):
            return record(op, args, kwargs, budget=False)  # it does not ask for their history
    trace = local.trace
    parts: list[Any] = [op]
    for a in args:
        kind = type(a)
        if kind is _tensor_class or kind is _parameter_class:
            v = a._v
            parts.append(v if v.index >= 0 and a._trace is trace else enter(a, trace))
        elif kind is float or kind is int or kind is bool or kind is complex:
            parts.append(kind)
            parts.append(a if a and a == a else number_part(a))
        else:
            parts.append(key_part(a, trace))
    if kwargs:
        for name, a in kwargs.items():
            parts.append(name)
            parts.append(key_part(a, trace))
    key = tuple(parts)
    try:
        state = trace.state.next.get(key)
    except TypeError:
        refuse_arrays(op, (args, kwargs))
        raise
    if state is None:
        for intercept in trace.state.mode.interceptors:
            taken = intercept(op, args, kwargs, key, budget)
            if taken is not None:
                return taken  # type: ignore[no-any-return]
        call = NumberCall.of(op, args, kwargs, key)
        state = None if call is None else call.take(trace)
    if state is None:
        if budget and prepared_anew(trace, op, args):
            local.runner.cut(REASON)
            # Views among the operands are made anew, which is no preparation.
            return record(op, args, kwargs, budget=False)
        before = trace.state
        state = record_new(trace, key, op, args, kwargs)
        if call is not None:
            call.keep(before, state)
    trace.state = state
    return state, trace


def record_new(trace: Trace, key: Any, op: Op, args: Any, kwargs: Any) -> State:
    """Make the step of an op on tensors that was not seen at this place; the trace stays there."""
    values, named = values_of(args, trace), values_of(kwargs, trace)
    return miss(trace, key, op, values, named, (args, kwargs))
