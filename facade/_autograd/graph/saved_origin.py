"""Origins of saved tensors that were written to, as PyTorch's error tells them.

PyTorch asks the tensor that was saved, which for a view means that it makes its history anew. Here
the tensor may be gone; then its edge tells, and a view's new history is known by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafax.functional.program.dtypes import is_differentiable

from ..._core.trie import LEAF, Value, local
from ..._core.view_ops import BY_NAME, inner_of, is_seen_by
from ..._rules.error_texts import short_name
from ..._rules.strides.layouts import followed, laid
from ..._storage.shared_storage import MANY
from ..._tracing.no_grad_views import multiple, unseen
from .edges import grad_fn
from .holders import holder_of


def origin_of(value: Value, node: Any, index: int, saved: Any = None) -> str:
    """Word the origin of `value`, operand `index` of `node` (or -1 - an output), as it is now.

    Raises:
      RuntimeError: for one of several views, whose history cannot be made anew.
    """
    if index < 0:
        if not is_differentiable(value.dtype):  # places have no history
            return ""
        return _of_result(node, -1 - index, saved)
    if saved is None:
        holder = holder_of(value)
    else:
        seen = saved.holder or saved.mate
        holder = seen() if seen is not None else None
    edge = node.next_edges()[index]
    view, why = _view_op(edge), _creation(edge)
    if holder is not None and is_differentiable(value.dtype) and value.role > LEAF:
        viewed = view is not None or why is not None
        if (holder._base_ is None) == viewed and holder._v is not value:
            holder = None  # another tensor on that memory
    maker = grad_fn(holder) if holder is not None else None
    out = edge[1] if edge is not None else 0
    if maker is not None:
        return _told(out, short_name(maker.name()))
    if holder is None and edge is None:
        _refuse_unseen(value)
    if holder is not None or edge is None or edge[0].accumulates:
        return ""
    name = short_name(edge[0].name())
    if why:
        raise RuntimeError(multiple(name, out, why))
    if why is None and (view is None or view.name in BY_NAME):
        return _told(out, name)
    return _told(0, "AsStrided")


def origin_of_tensor(t: Any) -> str:
    """Word which node made a tensor, as the error for one that was written to does."""
    fn = t.grad_fn
    return "" if fn is None else f", which is output {t.output_nr} of {short_name(fn.name())},"


def _told(out: int, name: str) -> str:
    return f", which is output {out} of {name},"


def _view_op(edge: Any) -> Any:
    """Get the op of the node that an edge leads to, if its result is a view."""
    call = getattr(getattr(edge[0], "state", None), "call", None) if edge is not None else None
    op = getattr(call, "op", None)
    return op if op is not None and op.view else None


def _refuse_unseen(value: Value) -> None:
    """Raise for a view that autograd did not see being made, of what requires grad."""
    state = value.state
    op = getattr(getattr(state, "call", None), "op", None)
    if op is None or not op.view or not state.operands[0].requires_grad:
        return
    if state.mode.inference or not state.mode.grad:
        raise RuntimeError(unseen(state.mode.inference))


def _creation(edge: Any) -> str | None:
    """Find what forbids to write to the view that an edge leads to; None for what is no view."""
    found = None
    while edge is not None:
        views = getattr(edge[0], "_views", None)
        if views is not None:
            return views.get(edge[1], found)  # type: ignore[no-any-return]
        view = _view_op(edge)
        if view is None:
            break
        if view.name in MANY:
            return "multi"
        found, edge = "", edge[0].next_edges()[0]  # a view of it: as what it is a view of
    return found


def _of_result(node: Any, out: int, saved: Any) -> str:
    op = getattr(node.state.call, "op", None)
    inner = None if op is None else inner_of(op)
    if op is None or inner is None:
        return _told(out, short_name(node.name()))
    if saved is None:
        seen = written_through(node.state, out, [r() for r in local.trace.refs])
    else:
        seen = saved.mate() if saved.mate is not None else None
    return _told(out, short_name(inner.backward)) if seen is None else _told(0, "AsStrided")


def written_through(state: Any, out: int, tensors: Iterable[Any]) -> Any:
    """Find the view among `tensors` that a write made this result through, or None."""
    op = getattr(state.call, "op", None)
    if op is None or inner_of(op) is None:
        return None
    shape = shape_of(state, -1 - out)
    for t in tensors:
        if t is not None and t._base_ is not None and tuple(t._v.shape) == shape:
            if is_seen_by(op, t._blens):
                return t
    return None


def shape_of(state: Any, index: int) -> tuple[int, ...]:
    """Get the shape of what a node saved: for a write through a view, that of the view."""
    if index >= 0:
        return tuple(state.operands[index].shape)
    op = getattr(state.call, "op", None)
    if op is None or inner_of(op) is None:
        return tuple(state.values[-1 - index].shape)
    base = state.operands[1 if op.random else 0]
    found = followed(op, laid(base), state.call.args, {})
    return tuple(base.shape if found is None else found.shape)
