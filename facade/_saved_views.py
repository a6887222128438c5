"""Saved tensors that were views: `grad_fn._saved_*` shows them as views again.

A node keeps values, not tensors. A user's own tensor is found while it lives; a view that only the
node knows, such as the `b.t()` in `x @ b.t()`, is made anew from what it was a view of.
"""

from __future__ import annotations

from typing import Any

from leafax.functional import Call, Slot

from ._modes import within
from ._node import find, tensor_of
from ._record import results
from ._storage import share
from ._trace import Trace, Value, local


def as_view(node: Any, index: int, tensor: Any) -> Any:
    """`tensor`, which a node saved as its operand `index`, or a view in its place if it was one."""
    if index < 0 or tensor._base_ is not None or tensor._v.inference:
        return tensor
    value = node.state.operands[index]
    if not _is_view(value):
        return tensor
    trace = node.trace
    if trace is local.trace and trace is not None:
        return _again(trace, value)
    return _of_leaf(node, index, tensor)


def _is_view(value: Value) -> bool:
    """Whether a step made it that views its first operand, with arguments that are no tensors."""
    state = value.state
    call = getattr(state, "call", None)
    if not isinstance(call, Call) or not call.op.view or state.values[value.out] is not value:
        return False
    return not any(isinstance(a, Slot) for a in (*call.args[1:], *call.kwargs.values()))


def _again(trace: Trace, value: Value) -> Any:
    """The view that is this value of the running trace, made anew from its base."""
    state = value.state
    above = state.operands[0]
    known = not _is_view(above) or find(trace, above) is not None
    base = tensor_of(trace, above) if known else _again(trace, above)
    with within(state.mode):
        made = results(state.call.op, (base, *state.call.args[1:]), state.call.kwargs, state, trace)
    return made[value.out] if state.call.many else made


def _of_leaf(node: Any, index: int, tensor: Any) -> Any:
    """A view of a leaf whose program has run, tied to that leaf again."""
    lens: list[Any] = []
    value, edge = node.state.operands[index], node.next_edges()[index]
    while edge is not None and _is_view(value) and not value.state.call.many:
        call = value.state.call
        lens.append((call.op, call.args[1:], call.kwargs))
        edge, value = edge[0].next_edges()[:1][0], value.state.operands[0]
    if edge is None or not edge[0].accumulates or tuple(edge[0].variable.shape) != value.shape:
        return tensor
    return share(edge[0].variable, tensor, tuple(reversed(lens)), view=True)
