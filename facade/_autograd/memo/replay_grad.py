"""Remembered calls of `autograd.grad`.

What the gradients of outputs by inputs record depends on the trie's state and on which values
those are, as long as nothing but the running trace takes part; also with `create_graph`, whose
gradients are in the trie as any other values. So a call is a step, as `backward()` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

from ..._core.handle import Handle
from ..._core.locks import running
from ..._core.trie import NODE, Trace, Value, local
from ..._core.view_ops import Lens
from ..._dispatch.macro_steps import is_uncut
from ..._storage.enter import enter_all
from ..._storage.pending_views import view_again
from ..._tracing.inputs import make
from ..engine.task import Edge, GraphTask
from .replay_backward import is_undisturbed, is_whole, step_of


class _Made(NamedTuple):
    """Way to make a gradient: a tensor of this value, or the view of one that nobody else has."""

    value: Value
    root: Value | None = None
    lens: Lens = ()
    creation: Any = None

    def again(self, trace: Trace) -> Any:
        """Make another such tensor."""
        if self.root is None:
            return make(self.value, trace)
        return view_again(make(self.root, trace), self.lens, self.value, self.creation, trace)


def is_plain(outs: Sequence[Any], ins: Sequence[Any], grads: Sequence[Any]) -> bool:
    """Tell whether the running trace alone takes part in the gradients of `outs` by `ins`."""
    trace = local.trace
    if not is_undisturbed(trace) or local.settings.anomaly is not None or local.autograd.tasks:
        return False
    if local.vmap is not None or local.cuts.aside or running:
        return False
    if not all(isinstance(g, Handle) for g in grads):
        return False
    if not all(_is_in(t, trace) and t._v.role == NODE for t in outs):
        return False
    return all(_is_in(t, trace) and t._v.requires_grad and not t._hooks for t in ins)


def _is_in(t: Any, trace: Trace) -> bool:
    return isinstance(t, Handle) and t._trace is trace and t._v.index >= 0 and t._stale is None


def run(
    outs: Sequence[Any], ins: Sequence[Any], edges: Any, grads: Sequence[Any], keep: bool,
    create_graph: bool,
) -> list[Any]:  # fmt: skip
    """Return the gradients of plain `outs` by plain `ins`; None for inputs that none reaches.

    Args:
      edges: gives `(roots, captures)` for a walk.
      grads: one for each of the outputs that take part.
    """
    trace = local.trace
    given = enter_all(grads, trace)
    key = ("grad", keep, create_graph, len(outs), *[t._v for t in (*outs, *ins)], *given)
    start, entered = trace.state, len(trace.arrays)
    step = start.next.get(key)
    if step is not None and step.reads.isdisjoint(trace.graph.freed) and is_uncut(step.state):
        trace.state = step.state
        trace.graph.freed |= step.freed
        again: list[Any] = []
        for k, made in step.effects:
            if k < len(again):
                again.append(again[k])
            else:
                again.append(None if made is None else made.again(trace))
        return again
    roots, captures = edges()
    task = GraphTask(roots, keep_graph=keep, create_graph=create_graph, captures=captures)
    captured: dict[Edge, Any] = task.run()
    found = [captured.get(e) for e in captures]
    if not is_whole(task, trace) or task.effects or len(trace.arrays) != entered:
        return found
    if not all(node.accumulates or node.trace is trace for node in task.reached):
        return found  # the graph goes on in what an earlier program left
    first: dict[int, int] = {}
    same = [i if g is None else first.setdefault(id(g), i) for i, g in enumerate(found)]
    ways = [None if g is None else _way(g, trace, start.count) for g in found]
    if all(w or g is None for w, g in zip(ways, found, strict=True)):
        start.next[key] = step_of(task, trace, tuple(zip(same, ways, strict=True)))
    return found


def _way(g: Any, trace: Trace, count: int) -> _Made | None:
    """Find how a gradient is made again; None if it is no new tensor, or others share its memory.

    Args:
      count: how many values there were before.
    """
    if not _is_fresh(g, trace, count) or g._viewers is not None:
        return None
    if not g._shares:
        return _Made(g._v)
    if g._viewed is not None:
        root, lens = g._viewed
        alone = type(root) is not ref and root._viewers is not None and len(root._viewers) == 1
        alone = alone and root._viewed is None
    elif g._base_ is not None:  # somebody asked what they share
        root, lens = g._base_, g._blens
        members = [m() for m in g._store.members]
        alone = all(m is None or m is g or m is root or m is g._store.cell for m in members)
    else:
        return None
    if not alone or not lens or root._base_ is not None or not _is_fresh(root, trace, count):
        return None
    return _Made(g._v, root._v, lens, g._creation)


def _is_fresh(t: Any, trace: Trace, count: int) -> bool:
    return t._trace is trace and t._v.index >= count and t._array is None and t._stale is None
