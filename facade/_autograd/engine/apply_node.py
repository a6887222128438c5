"""Gradients that one node passes on, recorded in the running trace or from what the node saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.lowering.vjp import vjp_of

from ..._core.dtypes import of
from ..._core.trie import State, Value, local
from ..._rules.dependence import depends, reached
from ..._rules.error_texts import FREED
from ..._rules.no_derivative import refuse
from ..._rules.reads_of_gradients import given_of, needed
from ..._rules.strides.of_results import strides_of
from ..._rules.undefined_gradients import drop_ungiven
from ..._storage.enter import enter
from ..._tracing.loop_cuts import cut_for_budget, over_budget
from ..extensions import extensions
from ..forward_mode.propagate import attach_tangents
from ..graph.fit_gradient import fit
from ..graph.node import Node
from .complex_phase_checks import WATCHED, watch
from .record_gradient import record_each, record_gradient, record_residual, record_saved, splits


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
    frame = node.checkpoint()
    trace = local.trace
    if frame is None:
        task.check(node)
        fresh = None
        if trace.memory.silent if node.trace is trace else node.saved:
            fresh = extensions.rewritten(node)
        if not fresh and (task.create_graph or task.looking):
            views = not task.create_graph or bool(local.mode.dual)
            passed = extensions.by_formula(node, grads, needed, views)
            if passed is not None:
                return passed
            fresh = None if views else extensions.kept_result(node)
        if fresh:
            task.plain = False
            return extensions.from_stand_ins(node, fresh, grads, needed)
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
            passed = extensions.by_formula(again, grads, needed, False)
            if passed is not None:
                return passed
        outs = _apply_again(task, again, wanted, given, cts)
    elif node.trace is trace and task.create_graph and splits(state):
        cts = [_fit(grads[k], state.values[k]) for k in given]
        outs = record_each(trace, state, wanted, given, cts, state.operands)
    elif node.trace is trace:
        cts = [_fit(grads[k], state.values[k]) for k in given]
        values = [*state.operands, *[enter(c, trace) for c in cts]]
        call = vjp_of(state.call, len(state.operands), wanted, given)
        differentiable = task.create_graph and depends(call, values, cts)
        outs = record_gradient(trace, call, values, state, differentiable)
        if local.mode.dual:
            attach_tangents(call, [*state.operands, *cts], outs)
    else:
        task.plain = False
        if over_budget(trace):  # a graph longer than a program may be
            cut_for_budget(trace)
        outs = _apply_saved(task, node, wanted, given, grads)
    spread: list[Any] = [None] * len(edges)
    for k, out in zip(wanted, outs, strict=True):
        spread[k] = out
    return spread


def idle(task: Any, node: Any, last: bool) -> None:
    """Run the checks of a node that has nothing to pass on.

    Args:
      last: nobody needs what it would pass on; else no gradient came to it.
    """
    if node.is_freed():
        raise RuntimeError(FREED)
    if node.trace is not local.trace:
        task.plain = False
    if isinstance(node, Node):
        if node.checkpoint() is None:
            task.check(node)
        refuse(node.state, ())
        refusal = getattr(getattr(node.state.call, "op", None), "no_gradient", None)
        if refusal is not None and not last:
            error, words = refusal
            raise error(words)


def _apply_again(task: Any, node: Any, wanted: Any, given: Any, cts: list[Any]) -> list[Any]:
    """Differentiate a node of a checkpointed call from operands that are computed again."""
    trace = local.trace
    values = [*node.operands, *[enter(c, trace) for c in cts]]
    call = vjp_of(node.state.call, len(node.operands), wanted, given)
    differentiable = task.create_graph and depends(call, values, cts)
    return record_gradient(trace, call, values, node.recorded, differentiable)


def _apply_saved(task: Any, node: Node, wanted: Any, given: Any, grads: list[Any]) -> list[Any]:
    """Differentiate a node of an earlier program from its residuals, or from the inputs it kept."""
    state = node.state
    trace = local.trace
    cts = [_fit(grads[k], state.values[k]) for k in given]
    strides = _strides_of_all(state, wanted, given, [enter(c, trace) for c in cts])
    if node.residual is not None and not task.create_graph and not local.mode.dual:
        residual, arrays = node.residual
        have = tuple(i for i, v in enumerate(state.operands) if v.requires_grad)
        take = tuple(have.index(k) for k in wanted)
        return record_residual(state, residual, arrays, given, take, cts, strides)
    saved = node.saved or {}
    if node.trace is not None and node.saved is None:
        if state in node.trace.graph.freed:
            if needed(state):
                raise RuntimeError(FREED)
            present = {}
        else:
            present = {i: node.unpack(i) for i in range(len(state.operands))}
    else:
        present = {i: saved[i].tensor for i in range(len(state.operands)) if i in saved}
    return record_saved(state, wanted, given, cts, present, task.create_graph, strides)


def _strides_of_all(state: State, wanted: Any, given: Any, cts: list[Value]) -> Any:
    """Find the strides of gradients as all operands tell them: what was kept of these may not."""
    values = [*state.operands, *cts]
    if all(v.strides is None for v in values):
        return None
    call = vjp_of(state.call, len(state.operands), wanted, given)
    return strides_of(call, values, [state.operands[k].aval for k in wanted])


def fitted(node: Any, passed: list[Any]) -> list[Any]:
    """Bring what a node passes on into the shapes of what it goes to.

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
    """Bring what a pass was given, `(edge, gradient)`, into the shapes of what it goes to."""
    return [(edge, _fitted("", i, grad, edge)) for i, (edge, grad) in enumerate(roots)]


def _fitted(name: str, number: int, grad: Any, edge: Any) -> Any:
    node, out = edge
    if grad is None or node.accumulates:
        return grad
    kinds = node.output_kinds()
    kind = kinds[out] if out < len(kinds) else None
    if kind is None or tuple(kind.shape) == tuple(grad.shape):
        return grad
    return fit(name, number, grad, kind)


def _fit(grad: Any, value: Value) -> Any:
    """Bring `grad` into the shape and dtype of the output that it belongs to."""
    if tuple(grad.shape) != tuple(value.shape):
        grad = grad.expand(value.shape) if grad.dim() <= len(value.shape) else grad
    if grad._v.dtype != value.dtype:
        grad = grad.to(of(value.dtype))
    return grad
