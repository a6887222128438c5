"""Graph nodes whose gradient is Python code: the base of `autograd.Function` and its kin.

Such a node is no step of the trie. Its outputs are values of role EXTERNAL: their gradient goes
to a node that lives outside the trace, with edges of its own, so it survives cuts by itself.
"""

from __future__ import annotations

from typing import Any

from ..._core.trie import local
from .hook_handle import RemovableHandle
from .node import SET_BY_HAND, Node, not_pickled


class CustomNode:
    """A node as the engine needs it; subclasses define `apply_custom`."""

    accumulates = False
    trace = None
    __reduce_ex__ = not_pickled
    state: Any = None

    def __init__(self) -> None:
        state = local.trace.state
        self.graph_order: tuple[float, float] = (local.trace.graph.serial, state.depth + 0.5)
        self._edges: list[Any] = []
        self.tensor_hooks: dict[int, tuple[int, Any]] = {}
        self.pre_hooks: dict[int, Any] = {}
        self.post_hooks: dict[int, Any] = {}
        self.retains: list[tuple[int, Any]] = []
        self.freed = False

    def apply_custom(self, grads: list[Any], needed: set[Any]) -> list[Any]:
        """Take one gradient (or None) an output to one (or None) an edge."""
        raise NotImplementedError

    def name(self) -> str:
        """Get the node's name."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes."""
        return self.__dict__.setdefault("_metadata", {})  # type: ignore[no-any-return]

    def _sequence_nr(self) -> int:
        return int(self.graph_order[1])

    def _set_sequence_nr(self, number: int) -> None:
        """Set the node's number: of nodes that are ready, those of higher numbers run first."""
        self.graph_order = (SET_BY_HAND, int(number))

    def next_edges(self) -> list[Any]:
        return self._edges

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The graph's next nodes, with the number of their output that is used here."""
        found = (None if k is None else self._edges[k] for k in self.next_places())
        return tuple(e if e is not None else (None, 0) for e in found)

    requires_grad = True
    hooked = Node.hooked
    _input_metadata = Node._input_metadata

    def next_places(self) -> tuple[int | None, ...]:
        """Map each of the `next_functions` to its place in `next_edges()`: each to its own."""
        return tuple(range(len(self._edges)))

    def output_kinds(self) -> list[Any]:
        """Give what is known of the outputs; None for one that is no tensor."""
        raise NotImplementedError

    def retains_of(self) -> list[tuple[int, Any]]:
        return self.retains

    def is_freed(self) -> bool:
        return self.freed

    def free(self) -> None:
        """Drop what the gradient reads."""
        self.freed = True

    def mark_hooked(self) -> None:
        pass  # a backward through this node is never remembered

    def register_hook(self, fn: Any) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return new ones."""
        handle = RemovableHandle(self.post_hooks)
        self.post_hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn: Any) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; it may return new ones."""
        handle = RemovableHandle(self.pre_hooks)
        self.pre_hooks[handle.id] = fn
        return handle
