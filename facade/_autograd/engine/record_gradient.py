"""Recording the gradient of one node: from the running trace, or from what was saved.

A gradient is a node itself, `vjp_of` the call that it differentiates; it takes the operands that
it reads and the gradients of the results.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from leafax.functional.lowering.pullbacks import fingerprint
from leafax.functional.lowering.residuals import Residual
from leafax.functional.lowering.vjp import ResidualCall, vjp_of
from leafax.functional.program.program import Aval, Call

from ..._core.handle import Handle
from ..._core.trie import State, Trace, Value, local
from ..._rules.dependence import WHOLE, depends, is_zero, linear
from ..._rules.node_edges import by_name
from ..._rules.reads_of_gradients import needed
from ..._storage.enter import enter
from ..._tracing.infer import step
from ..._tracing.inputs import from_array, make
from ..forward_mode.propagate import attach_tangents


def record_saved(
    state: State, wanted: Any, given: Any, cts: list[Any], present: dict[int, Any],
    create_graph: bool, strides: Any = None,
) -> list[Any]:  # fmt: skip
    """Record the gradients of `wanted` operands from tensors that stand for what was saved.

    Args:
      present: the operands that are there, by number.
      strides: of the results, where what is there does not tell.
    """
    trace = local.trace
    if create_graph and splits(state):
        return record_each(trace, state, wanted, given, cts, present)
    missing = tuple((i, v.aval) for i, v in enumerate(state.operands) if i not in present)
    call = vjp_of(state.call, len(state.operands), wanted, given, missing)
    own = [present[i] for i in sorted(present)]
    values = [enter(x, trace) for x in (*own, *cts)]
    differentiable = create_graph and depends(call, values, cts)
    outs = record_gradient(trace, call, values, None, differentiable, strides)
    if local.mode.dual:
        attach_tangents(call, [*own, *cts], outs)
    return outs


def record_gradient(
    trace: Trace, call: Any, values: list[Value], primal: State | None, differentiable: bool,
    strides: Any = None,
) -> list[Any]:  # fmt: skip
    """Record a gradient call; returns its results as tensors.

    Args:
      strides: of the results, where `values` does not tell.
    """
    key = ("grad", call, *values) if strides is None else ("grad", call, strides, *values)
    state = trace.state.next.get(key)
    if state is None:
        state = step(
            trace, key, call, values, differentiable=differentiable, primal=primal, strides=strides
        )
    trace.state = state
    return [make(v, trace) for v in state.values]


def splits(state: State) -> bool:
    """Tell whether gradients that are differentiated again are one node an input, as in PyTorch."""
    if sum(v.requires_grad for v in state.operands) < 2:
        return False
    op = getattr(state.call, "op", None)
    return op is not None and op.namespace != "opaque" and op.backward not in WHOLE


def record_each(
    trace: Trace, state: State, wanted: Any, given: Any, cts: list[Any], operands: Any
) -> list[Any]:
    """Record the gradients of the `wanted` operands, a node each."""
    order = by_name(state.call, wanted) if isinstance(state.call, Call) else wanted
    made = {k: _record_one(trace, state, k, given, cts, operands) for k in order}
    return [made[k] for k in wanted]


def _record_one(
    trace: Trace, state: State, k: int, given: Any, cts: list[Any], operands: Any
) -> Any:
    """Record the gradient of operand `k`, with edges to what it depends on and to nothing else.

    Args:
      operands: by number, those that are known: all of a step of this trace, or saved tensors.
    """
    read = needed(state, (k,))
    missing = tuple([(i, v.aval) for i, v in enumerate(state.operands) if i not in read])
    call = vjp_of(state.call, len(state.operands), (k,), given, missing)
    own = [operands[i] for i in sorted(read)]
    present = [enter(x, trace) if isinstance(x, Handle) else x for x in own]
    differentiable = any(c._tracked for c in cts)
    if not linear(call):
        differentiable = differentiable or any(v.requires_grad for v in present)
    differentiable = differentiable and not is_zero(call, [*present, *[c._v for c in cts]])
    values = [*present, *[enter(c, trace) for c in cts]]
    outs = record_gradient(trace, call, values, None, differentiable)
    if local.mode.dual:
        attach_tangents(call, [*own, *cts], outs)
    return outs[0]


# By what they compute: calls are compared by identity.
_alike: WeakValueDictionary[Any, ResidualCall] = WeakValueDictionary()


def residual_call(state: State, residual: Residual, given: Any, take: Any) -> ResidualCall:
    """Return the gradient of a step from its residuals, as a call."""
    call = residual.calls.get((given, take))
    if call is None:
        have = [v for v in state.operands if v.requires_grad]
        avals = tuple(Aval(tuple(v.shape), v.dtype, False, v.device) for v in have)
        call = ResidualCall(
            state.call, residual.treedef, residual.meta, len(residual.places), given, take, avals
        )
        mark = fingerprint(residual.treedef)
        if mark is not None:
            kinds = tuple([(v.aval, v.requires_grad) for v in state.operands])
            call = _alike.setdefault(
                (state.call, kinds, residual.meta, mark, call.n, given, take), call
            )
        residual.calls[given, take] = call
    return call


def record_residual(
    state: State, residual: Residual, arrays: Any, given: Any, take: Any, cts: list[Any],
    strides: Any,
) -> list[Any]:  # fmt: skip
    """Record the gradients of a step of an earlier program from its residuals.

    Args:
      take: which of the gradients, among those of the operands that require grad.
    """
    trace = local.trace
    values = [enter(from_array(a), trace) for a in arrays]
    values += [enter(c, trace) for c in cts]
    call: Any = residual_call(state, residual, given, take)
    return record_gradient(trace, call, values, None, False, strides)
