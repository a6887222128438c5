"""Propagation of tangents: each op is recorded again for them while a level is open.

`dual.py` tells what a dual tensor is, `tangents_of_writes.py` how writes carry tangents on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

from leafax.functional.lowering.jvp import jvp_of, reached_outputs, unread_inputs
from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Call

from ..._core.dual_levels import Duals, levels_below, opened, recording_levels, set_tangent
from ..._core.handle import Handle, tensors_in
from ..._core.trie import Mode, Trace, Value, local
from ..._dispatch.record import apply, record, results
from ..._dispatch.tangents import get_tangent
from ..._rules.no_derivative import refuse_qr
from ..._storage.enter import enter
from ..._tracing.infer import step
from ..._tracing.inputs import make
from ..graph.fit_gradient import zeros
from .no_forward_derivative import refuse_tangents


class _Call(NamedTuple):
    """Stand for the call of a step that is over: `wrap` has its result."""

    wrap: Any
    many: bool = True


class Finished(NamedTuple):
    """Stand for the state of an op whose results are made already, as `record` returns one."""

    call: _Call
    values: tuple[Value, ...] = ()
    value: Any = None


def _record_tangents(op: Op, args: Any, kwargs: Any, key: Any, may_cut: bool) -> Any:
    """Record one op and its derivative while a level is open."""
    mode = local.mode
    tensors = list(tensors_in((*args, *kwargs.values())))
    carried = any(get_tangent(t, level) is not None for t in tensors for level in mode.dual)
    carried = carried and not _skips_autograd(op, tensors, args)
    if carried:
        refuse_tangents(op, tensors)
    with recording_levels(()):
        state, trace = record(op, args, kwargs, budget=False)
        if not carried:
            return state, trace
        result = results(op, args, kwargs, state, trace)
    if op.name == "qr":
        refuse_qr(op, args, kwargs, tensors[0].shape)
    outs = list(result) if state.call.many else [result]
    if op.view:
        _view_tangents(op, args, kwargs, outs)
    elif op.name == "nextafter":
        _nextafter(args, outs)
    elif op.differentiable:
        attach_tangents(state.call, operands_as_tensors(state, tensors), outs)
    return Finished(_Call(lambda: result)), local.trace


# A number among these ops' operands is made a tensor, by PyTorch's signatures.
_WRAPPING = frozenset({"add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide"})


def _skips_autograd(op: Op, tensors: list[Any], args: Any) -> bool:
    """Tell if autograd is not asked of the op: all that it takes are inference tensors."""
    return all(t.is_inference() for t in tensors) and (
        op.name not in _WRAPPING or len(tensors) == len(args)
    )


def operands_as_tensors(state: Any, tensors: list[Any]) -> list[Any]:
    """Return a state's operands as tensors; numbers that became inputs stay values."""
    supply = iter(tensors)
    return [v if v.weak else next(supply) for v in state.operands]


def _view_tangents(op: Op, args: Any, kwargs: Any, outs: list[Any]) -> None:
    for level in local.mode.dual:
        along = get_tangent(args[0], level)
        if along is not None:
            with recording_levels(levels_below(level)):
                made = apply(op, along, *args[1:], **kwargs)
            for out, t in zip(outs, made if isinstance(made, tuple) else (made,), strict=True):
                if is_differentiable(out._v.dtype):
                    set_tangent(out, level, t)


def _nextafter(args: Any, outs: list[Any]) -> None:
    """Give `nextafter` its tangent, for which JAX has no rule: this is PyTorch's."""
    a, b = args
    for level in local.mode.dual:
        with recording_levels(levels_below(level)):
            along = [get_tangent(x, level) for x in args]
            along = [zeros(x._v) if t is None else t for x, t in zip(args, along, strict=True)]
            set_tangent(outs[0], level, apply(TABLE["where"], a == b, along[1], along[0]))


# PyTorch's formulas for these have tangents of the statistics, too.
_ALL_MOVE = frozenset({"_native_batch_norm", "native_batch_norm"})


def attach_tangents(call: Any, operands: Sequence[Any], outs: Sequence[Any]) -> None:
    """Give the results of a recorded call the tangents that follow from its operands'.

    Args:
      operands: tensors, or values of the running trace.
    """
    op = getattr(call, "op", None)
    constant = () if op is None or op.name in _ALL_MOVE else op.constant_outputs
    wanted = tuple(
        [k for k, o in enumerate(outs) if is_differentiable(o._v.dtype) and k not in constant]
    )
    if wanted:
        for level in local.mode.dual:
            for k, t in record_derivative(call, operands, wanted, level).items():
                set_tangent(outs[k], level, t)
    if any(o._tracked for o in outs):
        for x in operands:
            if isinstance(x, Handle) and x._duals:
                keep_for_backward(local.trace, enter(x, local.trace), x._duals)


def keep_for_backward(trace: Trace, value: Value, duals: Duals) -> None:
    """Keep the tangents of what an op took for a backward pass through it."""
    if trace.graph.duals is None:
        trace.graph.duals = {}
    trace.graph.hooked += 1  # no remembered backward knows of tangents
    kept = trace.graph.duals[value] = Duals(duals)
    for level in kept:
        opened.levels[level - 1].append(ref(kept))


def _tangent_of(x: Any, level: int) -> Any:
    if isinstance(x, Handle):
        return get_tangent(x, level)
    found = local.trace.graph.duals.get(x) if local.trace.graph.duals else None
    return None if found is None else found.get(level)


def record_derivative(
    call: Any, operands: Sequence[Any], wanted: tuple[int, ...], level: int
) -> dict[int, Any]:
    """Record tangents of a call's wanted results, those that depend on an operand with one."""
    given = [(i, t) for i, x in enumerate(operands) if (t := _tangent_of(x, level)) is not None]
    if not given:
        return {}
    trace = local.trace
    places = tuple([i for i, _ in given])
    tangents = [t for _, t in given]
    avals = [_value(x, trace).aval for x in (*operands, *tangents)]
    if not isinstance(call, Call):  # PyTorch's gradients are one formula an input
        reached = reached_outputs(call, tuple(avals[: len(operands)]), places)
        wanted = tuple([k for k in wanted if k in reached])
        if not wanted:
            return {}
    whole = jvp_of(call, len(operands), places, wanted)
    missing = () if _reads_all(call) else unread_inputs(whole, tuple(avals))
    absent = {i for i, _ in missing}
    present = [x for i, x in enumerate(operands) if i not in absent]
    jvp = jvp_of(call, len(operands), places, wanted, missing)
    return dict(zip(wanted, _run(jvp, [*present, *tangents], levels_below(level)), strict=True))


# PyTorch's formulas for these multiply a tangent of zeros with the other operand, so that the
# result requires grad where that does.
_PRODUCTS = frozenset({
    "mul", "div", "mm", "bmm", "matmul", "mv", "dot", "addmm", "addmv", "addbmm", "baddbmm", "addr",
    "addcmul", "addcdiv", "outer", "ger", "vdot", "inner",
})  # fmt: skip


# The same of these ops' derivatives: products as well.
_MADE_OF_PRODUCTS = _PRODUCTS | {"pow", "square", "var", "std", "conv1d", "conv2d", "conv3d"}


def _reads_all(call: Any) -> bool:
    names = _PRODUCTS
    while not hasattr(call, "op"):
        if not hasattr(call, "call"):
            return False
        call, names = call.call, _MADE_OF_PRODUCTS
    return call.op.name in names


def _value(x: Any, trace: Trace) -> Value:
    return enter(x, trace) if isinstance(x, Handle) else x


def _run(call: Any, operands: list[Any], levels: tuple[int, ...]) -> list[Any]:
    """Record a call; its results carry the tangents of `levels`."""
    with recording_levels(()):
        trace = local.trace
        values = [_value(x, trace) for x in operands]
        key = ("jvp", call, *values)
        state = trace.state.next.get(key)
        if state is None:
            state = step(trace, key, call, values)
        trace.state = state
        outs = [make(v, trace) for v in state.values]
    if levels:
        with recording_levels(levels):
            attach_tangents(call, operands, outs)
    return outs


Mode.intercept("dual", _record_tangents)
