"""Gradients as PyTorch's formulas spell them, for graphs that are differentiated again.

With `create_graph` a user sees the gradient's own graph: `x * x` has a gradient that `MulBackward0`
made, from exactly those tensors that the formula reads. Ops that are listed here are differentiated
by other ops then; the rest by one node for the whole gradient.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.program.program import Call, Input, Slot

from ..._core.trie import local
from ..._dispatch.record import apply
from ..._rules.no_derivative import refuse_parts
from ..._rules.node_edges import by_name
from ..graph.fit_gradient import fit
from ..graph.node import Node
from . import elementwise, indexing, matrix, rearrange, scatter, shapes, special
from .scalar_ops import times
from .tools import Formula, NoFormula, conj

# By op and parameter: the gradient for that operand.
FORMULAS: dict[str, dict[str, Formula]] = {
    **elementwise.FORMULAS,
    **matrix.FORMULAS,
    **shapes.FORMULAS,
    **rearrange.FORMULAS,
    **indexing.FORMULAS,
    **scatter.FORMULAS,
    **special.FORMULAS,
}


class Saved:
    """A node as a formula reads it: the gradient `g`, operands by parameter, shapes, the result.

    Attributes:
      grads: the gradients of all results, None where there is none; `g` is the first.
      gone: whether the first operand was written over; what was saved of it is a copy.
    """

    def __init__(self, node: Any, grads: list[Any], gone: bool = False) -> None:
        self.node, self.g, self.grads, self.gone = node, grads[0], grads, gone
        self._copy: Any = None
        self._made: dict[Any, Any] = {}
        self.given = node.state.call.arguments

    def __getitem__(self, name: str) -> Any:
        """Get an operand as it was saved, or a number."""
        a = self.given[name]
        if not isinstance(a, Slot):
            return a
        if self.gone and a.index == 0:
            if self._copy is None:
                self._copy = self.node.unpack(0).clone()
            return self._copy
        if self.node.state.operands[a.index].weak:
            return number(self.node, a.index)
        return self.node.unpack(a.index)

    def static(self, name: str, default: Any = None) -> Any:
        """Get an argument that is no tensor."""
        return self.given.get(name, default)

    def operand(self, name: str) -> Any:
        """Get the value that an operand was."""
        return self.node.state.operands[self.given[name].index]

    def shape(self, name: str = "input") -> tuple[int, ...]:
        """Get the shape of an operand."""
        return tuple(self.operand(name).shape)

    def once(self, make: Formula) -> Any:
        """Make once what the gradients of several operands are taken from."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @property
    def result(self) -> Any:
        """The op's (first) result."""
        return self.output(0)

    def output(self, k: int) -> Any:
        """Get the op's `k`-th result, counted from 0."""
        node = self.node
        # The recorded value itself: sharing memory would give it a history that `vmap` cannot map.
        return node.unpack(-1 - k, share=False) if isinstance(node, Node) else node.unpack(-1 - k)

    def scaled(self, grad: Any, name: str) -> Any:
        """Multiply `grad` by the number that the op was given by that name."""
        factor = self.static(name, 1)
        if isinstance(factor, Slot):
            return grad * conj(self[name])
        return grad if factor in (1, None) else times(grad, conj(factor))


def number(node: Any, index: int) -> Any:
    """Get the Python number that became a runtime input of the node's op.

    What a pass records with it is right for this number only.
    """
    for task in local.autograd.tasks:
        task.numbered = True
    value = node.state.operands[index]
    if node.trace is None:
        return node.unpack(index).item()
    before = value.state.path()[:-1]
    return node.trace.arrays[sum(isinstance(s.entry, Input) for s in before)]


def differentiate(
    node: Any, grads: list[Any], needed: set[Any], views: bool = False,
    table: dict[str, dict[str, Formula]] | None = None,
) -> list[Any] | None:  # fmt: skip
    """Take the gradients that `node` passes on from its formula; None if it has none.

    Args:
      grads: one an output.
      needed: the nodes whose gradients are wanted.
      views: ask for those formulas alone that make views, for somebody who looks at strides and
        writes in place.
      table: other formulas than those for graphs that are differentiated again.
    """
    state = node.state
    call = state.call
    if isinstance(call, VjpCall) and table is None and not views:
        return _forth(node, call, grads, needed)
    if not isinstance(call, Call) or call.op.backward == "CopySlices":
        return None
    if views and call.op.qualified not in shapes.VIEWING:
        return None
    formulas = (FORMULAS if table is None else table).get(call.op.qualified)
    lists = shapes.LISTS.get(call.op.qualified) if table is None else None
    if formulas is None and lists is None:
        return None
    if grads[0] is None and call.op.qualified not in shapes.SEVERAL:
        return None
    if call.op.no_gradient is not None:
        error, words = call.op.no_gradient
        raise error(words)
    s = Saved(node, grads, bool(call.op.overwrites))
    if s.static("rounding_mode") is not None:
        return None
    edges = node.next_edges()
    passed: list[Any] = [None] * len(edges)
    order = node.next_places()

    def put(index: int, grad: Any) -> None:
        kind = state.operands[index]
        if kind.dtype.kind != "c" and grad._v.dtype.kind == "c":
            refuse_parts(call.op)
            grad = grad.real
        place = order.index(index) if index in order else index
        passed[index] = fit(node.name(), place, grad, kind)

    wanted = {k for k, e in enumerate(edges) if e is not None and e[0] in needed}
    try:
        if lists is not None:
            for a, grad in zip(s.given["tensors"], lists(s), strict=True):
                if a.index in wanted:
                    put(a.index, grad)
            return passed
        assert formulas is not None
        slots = {a.index: name for name, a in s.given.items() if isinstance(a, Slot)}
        if not all(slots.get(k) in formulas for k in wanted):
            return None
        for k in by_name(call, sorted(wanted)):
            put(k, formulas[slots[k]](s))
    except NoFormula:
        return None
    return passed


def _forth(node: Any, call: Any, grads: list[Any], needed: set[Any]) -> list[Any] | None:
    """Differentiate a view's gradient, which is linear: the view of what arrives."""
    inner, edges = call.call, node.next_edges()
    if not isinstance(inner, Call) or not inner.op.view or inner.op.overwrites:
        return None
    if call.wanted != (0,) or len(edges) != len(node.state.operands) or grads[0] is None:
        return None
    if any(isinstance(a, Slot) for a in (*inner.args[1:], *inner.kwargs.values())):
        return None
    last = len(edges) - 1
    if edges[last] is None or edges[last][0] not in needed:
        return None
    passed: list[Any] = [None] * len(edges)
    seen = apply(inner.op, grads[0], *inner.args[1:], **inner.kwargs)
    passed[last] = fit(node.name(), last, seen, node.state.operands[last])
    return passed
