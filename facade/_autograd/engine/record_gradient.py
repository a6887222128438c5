"""Recording the gradient of one node: from the running trace, or from what was saved.

A gradient is a node itself, `vjp_of` the call that it differentiates; it takes the operands that
it reads and the gradients of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from leafax.functional.lowering.pullbacks import fingerprint
from leafax.functional.lowering.residuals import Residual
from leafax.functional.lowering.vjp import ResidualCall, vjp_of
from leafax.functional.program.program import Aval, Call

from ..._core.dtypes import of
from ..._core.handle import Handle
from ..._core.trie import State, Trace, Value, local
from ..._rules.no_derivative import refuse
from ..._rules.node_names import by_name
from ..._rules.reads_of_gradients import WHOLE, depends, is_zero, linear
from ..._rules.strides.of_results import strides_of
from ..._rules.undefined_gradients import drop_ungiven
from ..._storage.data_writes import by_result, changed
from ..._tracing.infer import step
from ..._tracing.inputs import enter, from_array, make
from ..._tracing.jax_call import reached
from ..._tracing.loop_cuts import cut_for_budget
from ..._tracing.record import over_budget
from ..forward_mode.propagate import attach
from ..graph.keep_over_cut import given_of, needed
from ..graph.node import Node
from ..saved.saved_values import FREED
from .complex_phase_checks import WATCHED, watch


def apply(task: Any, node: Node, grads: list[Any], needed: set[Any]) -> list[Any]:
    """Record what `node` passes on: one gradient an edge, None where none is needed.

    Args:
      task: the pass; what depends on more than the running trace sets its `plain` to False.
      needed: the nodes that lead to what is wanted.
    """
    custom = node.apply_custom
    if custom is not None:
        task.plain = False
        return list(custom(grads, needed))
    passed = _apply(task, node, grads, needed)
    return drop_ungiven(node.state.call, node.state.operands, passed)


def _apply(task: Any, node: Node, grads: list[Any], needed: set[Any]) -> list[Any]:
    if node.is_freed():
        raise RuntimeError(FREED)
    state = node.state
    frame = _frame(node)
    trace = local.trace
    if frame is None:
        task.check(node)
        fresh = changed(node) if (trace.silent if node.trace is trace else node.saved) else None
        if not fresh and (task.create_graph or task.looking):
            views = not task.create_graph or bool(local.mode.dual)
            spelled = _spelled(node, grads, needed, views)
            if spelled is not None:
                return spelled
            fresh = None if views else by_result(node)
        if fresh:
            task.plain = False
            from ..saved_hooks.raw_saved import apply_packed

            return apply_packed(node, grads, needed, fresh)
    edges = node.next_edges()
    wanted = tuple(k for k, e in enumerate(edges) if e is not None and e[0] in needed)
    refuse(state, wanted)
    op = getattr(state.call, "op", None)
    if op in WATCHED:
        task.plain = False
        watch(node, op, grads)
    floats = given_of(state)
    given = tuple(k for k in floats if k < len(grads) and grads[k] is not None)
    if op is not None and op.namespace == "opaque":
        wanted = reached(state, wanted, given)
    if frame is not None:
        task.plain = False
        cts = [_fit(grads[k], state.values[k]) for k in given]
        again = frame.again(node, cts, task.create_graph)
        if task.create_graph:
            spelled = _spelled(again, grads, needed)
            if spelled is not None:
                return spelled
        outs = _apply_again(task, again, wanted, given, cts)
    elif node.trace is trace and task.create_graph and _splits(state):
        cts = [_fit(grads[k], state.values[k]) for k in given]
        outs = _record_each(trace, state, wanted, given, cts, state.operands)
    elif node.trace is trace:
        cts = [_fit(grads[k], state.values[k]) for k in given]
        values = [*state.operands, *[enter(c, trace) for c in cts]]
        call = vjp_of(state.call, len(state.operands), wanted, given)
        differentiable = task.create_graph and depends(call, values, cts)
        outs = record_gradient(trace, call, values, state, differentiable)
        if local.mode.dual:
            attach(call, [*state.operands, *cts], outs)
    else:
        task.plain = False
        if over_budget(trace):  # a graph longer than a program may be
            cut_for_budget(trace)
        outs = _apply_saved(task, node, wanted, given, grads)
    passed: list[Any] = [None] * len(edges)
    for k, out in zip(wanted, outs, strict=True):
        passed[k] = out
    return passed


def idle(task: Any, node: Any, last: bool) -> None:
    """What running a node asks of it where it has nothing to pass on.

    Args:
      last: nobody needs what it would pass on; else no gradient came to it.
    """
    if node.is_freed():
        raise RuntimeError(FREED)
    if node.trace is not local.trace:
        task.plain = False
    if isinstance(node, Node):
        if _frame(node) is None:
            task.check(node)
        refuse(node.state, ())
        refusal = getattr(getattr(node.state.call, "op", None), "no_gradient", None)
        if refusal is not None and not last:
            error, words = refusal
            raise error(words)


def _frame(node: Node) -> Any:
    """The checkpointed call that the node is part of."""
    frames = node.trace.frames if node.trace is not None else None
    return frames.get(node.state) if frames else node.frame


def _spelled(node: Any, grads: list[Any], needed: set[Any], views: bool = False) -> Any:
    """What `node` passes on by PyTorch's formula; None if there is none here."""
    from ..formulas.differentiate import differentiate
    from ..formulas.from_result import again

    spelled = differentiate(node, grads, needed, views)
    return again(node, grads, needed) if spelled is None and not views else spelled


def _apply_again(task: Any, node: Any, wanted: Any, given: Any, cts: list[Any]) -> list[Any]:
    """A node of a checkpointed call: from operands that are computed again."""
    trace = local.trace
    values = [*node.operands, *[enter(c, trace) for c in cts]]
    call = vjp_of(node.state.call, len(node.operands), wanted, given)
    differentiable = task.create_graph and depends(call, values, cts)
    return record_gradient(trace, call, values, node.recorded, differentiable)


def _apply_saved(task: Any, node: Node, wanted: Any, given: Any, grads: list[Any]) -> list[Any]:
    """A node of an earlier program: from its residuals, or from the inputs it kept."""
    state = node.state
    trace = local.trace
    cts = [_fit(grads[k], state.values[k]) for k in given]
    strides = _strides_of_all(state, wanted, given, [enter(c, trace) for c in cts])
    if node.residual is not None and not task.create_graph and not local.mode.dual:
        residual, arrays = node.residual
        have = tuple(i for i, v in enumerate(state.operands) if v.requires_grad)
        call: Any = _residual_call(state, residual, given, tuple(have.index(k) for k in wanted))
        values = [enter(from_array(a), trace) for a in arrays]
        values += [enter(c, trace) for c in cts]
        return record_gradient(trace, call, values, None, False, strides)
    saved = node.saved or {}
    if node.trace is not None and node.saved is None:
        if state in node.trace.freed:
            if needed(state):
                raise RuntimeError(FREED)
            present = {}
        else:
            present = {i: node.unpack(i) for i in range(len(state.operands))}
    else:
        present = {i: saved[i].tensor for i in range(len(state.operands)) if i in saved}
    return record_saved(state, wanted, given, cts, present, task.create_graph, strides)


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
    if create_graph and _splits(state):
        return _record_each(trace, state, wanted, given, cts, present)
    missing = tuple((i, v.aval) for i, v in enumerate(state.operands) if i not in present)
    call = vjp_of(state.call, len(state.operands), wanted, given, missing)
    own = [present[i] for i in sorted(present)]
    values = [enter(x, trace) for x in (*own, *cts)]
    differentiable = create_graph and depends(call, values, cts)
    outs = record_gradient(trace, call, values, None, differentiable, strides)
    if local.mode.dual:
        attach(call, [*own, *cts], outs)
    return outs


def _strides_of_all(state: State, wanted: Any, given: Any, cts: list[Value]) -> Any:
    """The strides of gradients as all operands tell them: what was kept of these may not."""
    values = [*state.operands, *cts]
    if all(v.strides is None for v in values):
        return None
    call = vjp_of(state.call, len(state.operands), wanted, given)
    return strides_of(call, values, [state.operands[k].aval for k in wanted])


def fitted(node: Any, passed: list[Any]) -> list[Any]:
    """What a node passes on in the shapes of what it goes to.

    `t_()` in `no_grad` leaves the history that a tensor had in its old shape.

    Raises:
      RuntimeError: if that cannot be.
    """
    for number, k in enumerate(node.next_places()):
        edge = None if k is None else node.next_edges()[k]
        if k is not None and edge is not None and passed[k] is not None:
            passed[k] = _fitted(node.name(), number, passed[k], edge)
    return passed


def fitted_roots(roots: Sequence[Any]) -> list[Any]:
    """What a backward pass was given, `(edge, gradient)`, in the shapes of what it goes to."""
    return [(edge, _fitted("", i, grad, edge)) for i, (edge, grad) in enumerate(roots)]


def _fitted(name: str, number: int, grad: Any, edge: Any) -> Any:
    node, out = edge
    if grad is None or node.accumulates:
        return grad
    kinds = node.output_kinds()
    kind = kinds[out] if out < len(kinds) else None
    if kind is None or tuple(kind.shape) == tuple(grad.shape):
        return grad
    from ..graph.fit_gradient import fit

    return fit(name, number, grad, kind)


def _fit(grad: Any, value: Value) -> Any:
    """`grad` in the shape and dtype of the output that it belongs to."""
    if tuple(grad.shape) != tuple(value.shape):
        grad = grad.expand(value.shape) if grad.dim() <= len(value.shape) else grad
    if grad._v.dtype != value.dtype:
        grad = grad.to(of(value.dtype))
    return grad


def record_gradient(
    trace: Trace, call: Any, values: list[Value], primal: State | None, differentiable: bool,
    strides: Any = None,
) -> list[Any]:  # fmt: skip
    """Record a gradient call; its results as tensors.

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


def _splits(state: State) -> bool:
    """Whether gradients that are differentiated again are one node an input, as in PyTorch."""
    if sum(v.requires_grad for v in state.operands) < 2:
        return False
    op = getattr(state.call, "op", None)
    return op is not None and op.namespace != "opaque" and op.backward not in WHOLE


def _record_each(
    trace: Trace, state: State, wanted: Any, given: Any, cts: list[Any], operands: Any
) -> list[Any]:
    """The gradients of the `wanted` operands, a node each."""
    order = by_name(state.call, wanted) if isinstance(state.call, Call) else wanted
    made = {k: _record_one(trace, state, k, given, cts, operands) for k in order}
    return [made[k] for k in wanted]


def _record_one(
    trace: Trace, state: State, k: int, given: Any, cts: list[Any], operands: Any
) -> Any:
    """The gradient of operand `k`, with edges to what it depends on and to nothing else.

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
        attach(call, [*own, *cts], outs)
    return outs[0]


# By what they compute: calls are compared by identity.
_alike: WeakValueDictionary[Any, ResidualCall] = WeakValueDictionary()


def _residual_call(state: State, residual: Residual, given: Any, take: Any) -> ResidualCall:
    call = residual.calls.get((given, take))
    if call is None:
        have = [v for v in state.operands if v.requires_grad]
        avals = tuple(Aval(tuple(v.shape), v.dtype) for v in have)
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
