"""How ops and writes carry tangents on: what is recorded while a level of forward mode is open.

See `_dual.py` for what a dual tensor is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple
from weakref import ref

from leafax.functional.lowering.jvp import jvp_of, reached_outputs, unread_inputs
from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Call

from ..._core.handle import Handle
from ..._core.trie import Mode, Trace, Value, local
from ..._rules.no_derivative import refuse_qr
from ..._storage.conj_neg_bits import same_meta
from ..._tracing.infer import step
from ..._tracing.inputs import enter, make
from ..._tracing.record import apply, record, results
from ..graph.fit_gradient import zeros
from .dual import Duals, base_of, below, carries, hold, opened, seeing, tangent, through
from .no_forward_derivative import refuse


class _Call(NamedTuple):
    """Looks to `_record.apply` like the call of a step that is over: `wrap` has its result."""

    wrap: Any
    many: bool = True


class Finished(NamedTuple):
    """What `_record.record` returns for an op whose results are made already."""

    call: _Call
    values: tuple[Value, ...] = ()
    value: Any = None


def _record_tangents(op: Op, args: Any, kwargs: Any, key: Any, may_cut: bool) -> Any:
    """Record one op and its derivative while a level is open."""
    mode = local.mode
    tensors = _tensors((*args, *kwargs.values()))
    carries = any(tangent(t, level) is not None for t in tensors for level in mode.dual)
    carries = carries and not _skips_autograd(op, tensors, args)
    if carries:
        refuse(op, tensors)
    with seeing(()):
        state, trace = record(op, args, kwargs, budget=False)
        if not carries:
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
        attach(state.call, _operands(state, tensors), outs)
    return Finished(_Call(lambda: result)), local.trace


# A number among these ops' operands is made a tensor, by PyTorch's signatures.
_WRAPPING = frozenset({"add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide"})


def _skips_autograd(op: Op, tensors: list[Any], args: Any) -> bool:
    """Whether the op is none of autograd's: all that it takes are inference tensors."""
    return all(t.is_inference() for t in tensors) and (
        op.name not in _WRAPPING or len(tensors) == len(args)
    )


def _tensors(args: Any) -> list[Any]:
    """The tensors among arguments, in the order in which a call takes them."""
    found: list[Any] = []
    for a in args:
        if isinstance(a, Handle):
            found.append(a)
        elif type(a) in (tuple, list):
            found += _tensors(a)
        elif isinstance(a, dict):
            found += _tensors(a.values())
    return found


def _operands(state: Any, tensors: list[Any]) -> list[Any]:
    """A state's operands as tensors; numbers that became inputs stay values."""
    supply = iter(tensors)
    return [v if v.weak else next(supply) for v in state.operands]


def _view_tangents(op: Op, args: Any, kwargs: Any, outs: list[Any]) -> None:
    for level in local.mode.dual:
        along = tangent(args[0], level)
        if along is not None:
            with seeing(below(level)):
                made = apply(op, along, *args[1:], **kwargs)
            for out, t in zip(outs, made if isinstance(made, tuple) else (made,), strict=True):
                if is_differentiable(out._v.dtype):
                    hold(out, level, t)


def _nextafter(args: Any, outs: list[Any]) -> None:
    """The one op with a tangent and no gradient: JAX has no rule, this is PyTorch's."""
    a, b = args
    for level in local.mode.dual:
        with seeing(below(level)):
            along = [tangent(x, level) for x in args]
            along = [zeros(x._v) if t is None else t for x, t in zip(args, along, strict=True)]
            hold(outs[0], level, apply(TABLE["where"], a == b, along[1], along[0]))


# PyTorch's formulas for these have tangents of the statistics, too.
_ALL_MOVE = frozenset({"_native_batch_norm", "native_batch_norm"})


def attach(call: Any, operands: Sequence[Any], outs: Sequence[Any]) -> None:
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
            for k, t in derivative(call, operands, wanted, level).items():
                hold(outs[k], level, t)
    if any(o._tracked for o in outs):
        for x in operands:
            if isinstance(x, Handle) and x._duals:
                remember(local.trace, enter(x, local.trace), x._duals)


def remember(trace: Trace, value: Value, duals: Duals) -> None:
    """Keep the tangents of what an op took for a backward pass through it."""
    if trace.duals is None:
        trace.duals = {}
    trace.hooked += 1  # no remembered backward knows of tangents
    kept = trace.duals[value] = Duals(duals)
    for level in kept:
        opened.levels[level - 1].append(ref(kept))


def _tangent_of(x: Any, level: int) -> Any:
    if isinstance(x, Handle):
        return tangent(x, level)
    found = local.trace.duals.get(x) if local.trace.duals else None
    return None if found is None else found.get(level)


def derivative(
    call: Any, operands: Sequence[Any], wanted: tuple[int, ...], level: int
) -> dict[int, Any]:
    """Tangents of the wanted results of a call, those that depend on an operand with one."""
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
    return dict(zip(wanted, _run(jvp, [*present, *tangents], below(level)), strict=True))


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
    with seeing(()):
        trace = local.trace
        values = [_value(x, trace) for x in operands]
        key = ("jvp", call, *values)
        state = trace.state.next.get(key)
        if state is None:
            state = step(trace, key, call, values)
        trace.state = state
        outs = [make(v, trace) for v in state.values]
    if levels:
        with seeing(levels):
            attach(call, operands, outs)
    return outs


# ---------------------------------------------------------------- writes


@cache
def _shadow(op: Op) -> Op:
    """The in-place variant of an op, as a function: what is differentiated of a write."""
    from ..._ops.writes.apply_inplace import inplace_of

    put = inplace_of(op)
    return Op(put.fn, name=op.name, numbers=op.numbers, random=op.random)


def inplace(op: Op, t: Any, args: Any, key: Any, kwargs: Any) -> dict[int, Any] | None:
    """The tangents that `t` has after a write, by level; None if there are none."""
    tensors = _tensors((t, *args, *kwargs.values()))
    if not op.differentiable:
        return None
    if not any(map(carries, tensors)):
        return None
    refuse(op, tensors, "_")
    before = () if key is None else (key,)
    with seeing(()):
        state, _ = record(_shadow(op), (*before, t, *args), kwargs, budget=False)
    operands = _operands(state, [*before, *tensors])
    found = {level: derivative(state.call, operands, (0,), level) for level in local.mode.dual}
    return {level: made[0] for level, made in found.items() if made}


def zeroed(t: Any) -> dict[int, Any]:
    """Tangents of zeros, by level, for a tensor that has others."""
    return {n: zeros(t._v) for n in local.mode.dual if tangent(t, n) is not None}


def taken(t: Any, args: Any) -> None:
    """Before a write that autograd records: keep the tangents of what it takes for backward.

    Those of what is overwritten are copied, as they are about to be written to as well.
    """
    trace = local.trace
    over = t if t._base_ is None else t._base_
    for x in _tensors(args):
        if x is not over and carries(x):
            remember(trace, enter(x, trace), x._duals)
    kept = Duals()
    for level in local.mode.dual:
        along = tangent(over, level)
        if along is not None:
            with seeing(below(level)):
                kept[level] = apply(TABLE["clone"], along)
    if kept:
        remember(trace, enter(over, trace), kept)


def written(t: Any, tangents: dict[int, Any]) -> None:
    """After a write: `t` carries these tangents, and so do its base and that base's views."""
    for level, new in tangents.items():
        old = tangent(t, level)
        if old is not None:
            with seeing(below(level)):
                old.copy_(new)
            continue
        base, lens = base_of(t)
        if base is not None and same_meta(new, base) and same_meta(new, t):
            hold(base, level, new)  # one tensor for both
        elif base is not None:
            from ..._ops.creation.factories import batched_as

            whole = batched_as(new, zeros(base._v))
            hold(base, level, whole)
            part = through(whole, lens, level)
            with seeing(below(level)):
                part.copy_(new)
            new = part
        hold(t, level, new)


Mode.intercept("dual", _record_tangents)
