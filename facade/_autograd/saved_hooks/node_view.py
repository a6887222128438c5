"""A hooked node as formulas see nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .unpacked_checks import check_unpacked

if TYPE_CHECKING:
    from .hooked_node import HookedNode


class _Operand(NamedTuple):
    shape: Any
    dtype: Any
    weak: bool
    strides: Any = None


class NodeFacts:
    """The step that a node differentiates, as far as the node knows it."""

    def __init__(self, node: HookedNode) -> None:
        self.call, self.autocast = node.call, node.autocast
        self.operands = [
            _Operand(a.shape, a.dtype, w, k.strides)
            for a, w, k in zip(node.avals, node.weak, node.kinds, strict=True)
        ]
        self.value = node.outs[0]


class NodeView(NodeFacts):
    """A hooked node as formulas see nodes; each saved tensor is unpacked once.

    Attributes:
      state: itself: `call`, `operands` and `mode` are all that formulas look at.
    """

    trace = None

    def __init__(self, node: HookedNode) -> None:
        super().__init__(node)
        self._node = node
        self._seen: dict[int, Any] = {}
        self.name, self.next_edges = node.name, node.next_edges
        self.next_places = node.next_places

    @property
    def state(self) -> NodeView:  # not an attribute: what it unpacked would be in a cycle
        return self

    mode = state

    def unpack(self, index: int) -> Any:
        if index not in self._seen:
            node = self._node
            if index in node.kept:
                self._seen[index] = node.kept[index]
            elif index < 0:
                self._seen[index] = t = node.packed[index].unpack(node)
                check_unpacked(node.call.op, node.outs[-1 - index].dtype, t)
            else:
                self._seen[index] = node.operand(index)
        return self._seen[index]
