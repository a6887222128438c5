"""Recording: the one door through which every op goes.

`apply` is the door for ops on tensors. It forms the step's key, looks it up in the trie, and on
a hit makes the result's handle; on a miss it infers shapes, makes the state and its values, and
goes on. `_fast.py` has the same hit path written out for the commonest ops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import ref

import jax
import numpy as np

from leafax.functional import Node, Op, Slot, call_of, is_differentiable

from ._enter import NUMBER, add_input, enter, make
from ._enter import register as _register
from ._handle import Handle
from ._trace import NODE, NOWHERE, State, Trace, Value, local

BUDGET = 2000  # computing nodes a program may have before it is cut
WHOLE = 400  # what an opaque node counts for in the budget
BUDGET_BYTES = 1 << 30  # bytes that a trace may hold on to through its inputs

_tensor_class: Any = Handle  # what results are; `register` says
_share_views: Any = None
_HERE = Path(__file__).parent
_SKIP = tuple(str(_HERE.parent / name) for name in (_HERE.name, "functional", "adapters"))


def register(cls: type, share_views: Callable[..., None]) -> None:
    """Tell the recorder which class its results are, and what ties views to what they view."""
    global _tensor_class, _share_views
    _tensor_class, _share_views = cls, share_views
    _register(cls)


def user_line() -> tuple[str, int]:
    """File and line of the innermost frame outside leafax (and jax)."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_SKIP) and "/jax/" not in name and not name.startswith("<frozen"):
            return (name, frame.f_lineno)
        frame = frame.f_back
    return ("?", 0)


def number_part(x: Any) -> Any:
    """How a Python number stands in a key: 0.0, -0.0 and NaN need their own spelling."""
    if x == 0 or x != x:
        return repr(x)
    return x


def key_part(x: Any, trace: Trace) -> Any:
    """How an argument stands in a key."""
    kind = type(x)
    if kind is float or kind is int or kind is bool or kind is complex:
        return (kind, number_part(x))
    if isinstance(x, Handle):
        return enter(x, trace)
    if kind is Value:
        return x
    if kind is tuple or kind is list:
        return (kind, *[key_part(y, trace) for y in x])
    if kind is slice:
        return (slice, key_part((x.start, x.stop, x.step), trace))
    if isinstance(x, dict):
        return (dict, *[(k, key_part(v, trace)) for k, v in x.items()])
    if isinstance(x, np.ndarray):
        raise TypeError("an array cannot be a static argument of an op: make it a tensor")
    return x


def apply(op: Op, *args: Any, **kwargs: Any) -> Any:
    """Record `op` on tensors, numbers and static arguments; return its result's tensors.

    Raises what the op's body raises for these shapes and dtypes, at the user's line.
    """
    if not kwargs and not op.view:
        out = known(op, args)
        if out is not None:
            return out
    if op.view and args[0]._lens:
        from ._strides import copied

        copy = copied(op, args[0], args[1:], kwargs)
        if copy is not None:
            return copy
    state, trace = record(op, args, kwargs)
    return results(op, args, kwargs, state, trace)


def results(op: Op, args: Any, kwargs: Any, state: State, trace: Trace) -> Any:
    """The tensors of a step that `record` took."""
    if state.call.many:
        outs = [make(v, trace) for v in state.values]
        if op.view:
            _share_views(op, args, kwargs, outs)
        return state.call.wrap(*outs) if state.call.wrap is not None else tuple(outs)
    out = make(state.value, trace)
    if op.view:
        _share_views(op, args, kwargs, [out])
    return out


def known(op: Op, args: tuple[Any, ...]) -> Any:
    """The result of a step that was seen before, or None.

    For ops with one result that is no view; `record` without its function calls, each of which
    costs a microsecond or more when a step's computation has just swept the caches.
    """
    trace = local.trace
    if trace.nbytes > BUDGET_BYTES or trace.state.nodes >= (local.budget or BUDGET):
        return None
    parts: list[Any] = [op]
    for a in args:
        kind = type(a)
        if kind is _tensor_class:
            v = a._v
            parts.append(v if v.index >= 0 and a._trace is trace else enter(a, trace))
        elif a is None or kind is str or isinstance(a, np.dtype):
            parts.append(a)
        elif (kind is int or kind is float) and a:
            parts.append(kind)
            parts.append(a)
        elif kind is int:
            parts.append(int)
            parts.append("0")
        else:
            return None
    state = trace.state.next.get(tuple(parts))
    if state is None or state.call.many:
        return None
    trace.state = state
    out = object.__new__(_tensor_class)
    out._v = state.value
    out._trace = trace
    trace.refs.append(ref(out))
    return out


def record(op: Op, args: Any, kwargs: Any, budget: bool = True) -> tuple[State, Trace]:
    """Step over one op; the door behind `apply`, for those who make the handles themselves.

    Args:
      budget: whether the trace may be cut here for its length. Operands that are values (not
        tensors) would not survive that.
    """
    if budget and over_budget(local.trace):
        from ._budget import cut_for_budget

        cut_for_budget(local.trace)
    trace = local.trace
    parts: list[Any] = [op]
    for a in args:
        kind = type(a)
        if kind is _tensor_class:
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
    state = trace.state.next.get(key)
    if state is None:
        mode = trace.state.mode
        if mode.dual:
            return _with_tangents(op, args, kwargs)
        if mode.hooks:
            hooked = _with_hooks(op, args, kwargs)
            if hooked is not None:
                return hooked  # type: ignore[no-any-return]
        state = _miss(trace, key, op, args, kwargs)
    trace.state = state
    return state, trace


def _with_hooks(op: Op, args: Any, kwargs: Any) -> Any:
    from .autograd._hooked_node import recorded

    return recorded(op, args, kwargs)


def _with_tangents(op: Op, args: Any, kwargs: Any) -> Any:
    from ._dual_ops import recorded

    return recorded(op, args, kwargs)


def _miss(trace: Trace, key: Any, op: Op, args: Any, kwargs: Any) -> State:
    """The state of a step that was not seen at this place."""
    numbers = _numbers(op, args, kwargs)
    if numbers:
        state = trace.state
        place = _place(op, args, kwargs, numbers, trace)
        if state.numbers is None:
            state.numbers = {}
        baked = state.numbers.get(place)
        if baked is None:
            state.numbers[place] = key
        else:
            state.next.pop(baked, None)
            return _with_inputs(trace, op, args, kwargs, numbers)
    return _new(trace, key, op, args, kwargs)


def _new(trace: Trace, key: Any, op: Op, args: Any, kwargs: Any) -> State:
    inputs: list[Value] = []
    t_args = tuple(_template(a, inputs, trace) for a in args)
    t_kwargs = {k: _template(a, inputs, trace) for k, a in kwargs.items()}
    overwrites = inputs[1 if op.random else 0] if op.overwrites else None
    return step(trace, key, call_of(op, t_args, t_kwargs), inputs, overwrites=overwrites)


def over_budget(trace: Trace) -> bool:
    """Whether the program has grown as far as it may."""
    state = trace.state
    if local.budget and state.nodes >= local.budget:
        return True
    if trace.nbytes > BUDGET_BYTES:
        # Parameters are held by their model anyway; what counts is held by the trace alone.
        trace.nbytes = sum(
            a.nbytes for a in trace.arrays if hasattr(a, "nbytes") and sys.getrefcount(a) <= 3
        )
    return state.nodes >= BUDGET or trace.nbytes > BUDGET_BYTES


def _template(a: Any, inputs: list[Value], trace: Trace) -> Any:
    """`a` with its tensors replaced by slots; their values go to `inputs`."""
    if isinstance(a, Handle):
        inputs.append(enter(a, trace))
        return Slot(len(inputs) - 1)
    if isinstance(a, Value):
        inputs.append(a)
        return Slot(len(inputs) - 1)
    if type(a) in (tuple, list):
        return type(a)(_template(x, inputs, trace) for x in a)
    if isinstance(a, dict):
        return {k: _template(x, inputs, trace) for k, x in a.items()}
    return a


def _numbers(op: Op, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Which arguments are Python numbers that may become runtime inputs."""
    if not op.numbers:
        return ()
    found: list[Any] = []
    for i, a in enumerate(args):
        if type(a) in (float, int) and i < len(op.parameters) and op.parameters[i] in op.numbers:
            found.append(i)
    found += [k for k, a in kwargs.items() if type(a) in (float, int) and k in op.numbers]
    return tuple(found)


def _place(op: Op, args: Any, kwargs: Any, numbers: Any, trace: Trace) -> Any:
    """The key with the numbers' values left out."""
    parts: list[Any] = []
    for i, a in enumerate(args):
        parts.append(type(a) if i in numbers else key_part(a, trace))
    for k, a in kwargs.items():
        parts.append((k, type(a) if k in numbers else key_part(a, trace)))
    return (op, *parts)


def _with_inputs(trace: Trace, op: Op, args: Any, kwargs: Any, numbers: Any) -> State:
    """The step with its numbers as runtime inputs: they changed from one time to the next."""
    args, kwargs = list(args), dict(kwargs)
    for place in numbers:
        holder: Any = args if type(place) is int else kwargs
        x = holder[place]
        holder[place] = add_input(trace, NUMBER[type(x)], x)
    parts: list[Any] = [op, "numbers"]
    parts += [a if isinstance(a, Value) else key_part(a, trace) for a in args]
    parts += [(k, a if isinstance(a, Value) else key_part(a, trace)) for k, a in kwargs.items()]
    key = tuple(parts)
    state = trace.state.next.get(key)
    return state if state is not None else _new(trace, key, op, args, kwargs)


def _refuse_inference(state: State) -> None:
    """Raise if a tensor made in inference mode would be saved for backward."""
    from ._saved import saved_places

    for _, index in saved_places(state):
        if index >= 0 and state.operands[index].inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors "
                "created in inference mode in computation tracked by autograd. To work around "
                "this, you can make a clone to get a normal tensor and use it in autograd, or use "
                "`torch.no_grad()` instead of `torch.inference_mode()`."
            )


def step(
    trace: Trace,
    key: Any,
    call: Any,
    inputs: list[Value],
    *,
    differentiable: bool = True,
    overwrites: Value | None = None,
    primal: State | None = None,
) -> State:
    """Make the state after calling `call` on `inputs`, and enter it into the trie.

    Args:
      differentiable: False where the caller knows that no gradient may flow.
      overwrites: the value whose storage the (first) result is written into.
      primal: for a gradient node, the state that it differentiates.
    """
    state = trace.state
    try:
        avals = call.abstract(tuple(v.aval for v in inputs))
    except jax.errors.JAXTypeError:
        raise
    except Exception as error:
        # JAX's frames and notes would hide the user's line and PyTorch's words.
        error.__dict__.pop("__notes__", None)
        raise error.with_traceback(None) from None
    mode = state.mode
    after = State(state, None, mode)
    where = user_line()
    node = Node(call, tuple(v.index for v in inputs), avals, None, where)
    after.entry, after.call, after.where = node, call, where
    # A model or an optimizer's update weighs as much as the hundreds of ops in it.
    after.nodes += WHOLE if getattr(getattr(call, "op", None), "namespace", "") == "opaque" else 1
    after.operands = tuple(inputs)
    op = getattr(call, "op", None)
    tracks = (
        mode.grad and not mode.inference and differentiable and (op is None or op.differentiable)
    )
    tracks = tracks and any(v.requires_grad for v in inputs)
    if tracks and all(v.inference for v in inputs):
        tracks = False  # autograd is asked by no operand
    shared = inputs[0] if op is not None and op.view and inputs else None
    inference = mode.inference
    if shared is not None or overwrites is not None:
        inference = (shared or overwrites).inference  # type: ignore[union-attr]
    if shared is None and tracks and any(v.inference for v in inputs):
        _refuse_inference(after)
    values = []
    for k, aval in enumerate(avals):
        needs = tracks and is_differentiable(aval.dtype)
        storage, version = -1, 0
        if k == 0 and overwrites is not None:
            storage, version = overwrites.storage, overwrites.version + 1
        elif shared is not None:
            storage, version = shared.storage, shared.version
        values.append(
            Value(
                after.count + k,
                aval,
                requires_grad=needs,
                role=NODE if needs else NOWHERE,
                state=after,
                out=k,
                storage=storage,
                version=version,
                inference=inference,
            )  # fmt: skip
        )
    after.values = tuple(values)
    after.value = values[0] if values else None
    after.count += len(values)
    if primal is not None:
        node.primal = primal
    local.states += 1
    state.next[key] = after
    return after
