"""The node of a base after a write to a view of it whose gradient is a node of its own: an
`autograd.Function`'s, or that of an op recorded under saved-tensor hooks.
"""

from __future__ import annotations

from typing import Any

from ..._core.trie import local
from ..._core.view_ops import Lens, reader, spell, writer
from ..._dispatch.record import apply, record
from ..._rules.error_texts import FREED
from ..._storage.autograd_roles import tag
from ..._storage.enter import enter
from ..._storage.write import write_view
from ..._tracing.inputs import make
from .edges import edge_from
from .history import external
from .python_node import CustomNode


class CopySlices(CustomNode):
    """Gives the write's node the view's part of the gradient, and puts its answer in its place.

    Args:
      ctx: the node of the write: a Function's context, or a `HookedNode`.
      place: which of its operands was written to.
      base: the tensor that that one is a view of, and `lens` how.
    """

    def __init__(self, ctx: Any, place: int, base: Any, lens: Lens) -> None:
        super().__init__()
        self._ctx, self._place, self._lens = ctx, place, lens
        self._others = [k for k in ctx.next_places() if k != place]
        edges = ctx.next_edges()
        self._edges = [edge_from(base), *(None if k is None else edges[k] for k in self._others)]
        self._kind = base._v.resting

    def name(self) -> str:
        """Get the node's name."""
        return "torch::autograd::CopySlices"

    def __repr__(self) -> str:
        return f"<CopySlices object at {hex(id(self))}>"

    def output_kinds(self) -> list[Any]:
        """Give what is known of the base."""
        return [self._kind]

    def apply_custom(self, grads: list[Any], needed: set[Any]) -> list[Any]:
        if self.freed:
            raise RuntimeError(FREED)
        grad = grads[0] if grads else None
        if grad is None:
            return [None] * len(self._edges)
        structure, flat = spell(self._lens)
        # Read as the base lies, however the gradient does: `sum` gives one that is expanded.
        state, trace = record(reader(structure), (grad, *flat), {})
        part = make(state.value, trace).clone()
        results = self._ctx.apply_custom([part], needed)
        new = results[self._place]
        new = new if new is not None else part * 0
        whole = apply(writer(structure, False), grad, new, *flat)
        return [whole, *(None if k is None else results[k] for k in self._others)]

    def free(self) -> None:
        """Drop what the Function saved; another backward raises."""
        self.freed = True
        self._ctx.free()


def rebase(ctx: Any, t: Any, place: int) -> None:
    """Give the base of `t`, a view that the Function wrote to, its new history."""
    base = t._base_
    node = CopySlices(ctx, place, base, t._blens)
    trace = local.trace
    value = enter(base, trace)
    value = tag(trace, value, value, value.storage, value.version + 1)
    write_view(t, external(value, node, 0))
    base._node, base._out = node, 0
