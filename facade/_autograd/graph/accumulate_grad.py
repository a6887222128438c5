"""The ends of a graph: nodes that add what arrives to a leaf's `.grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .hook_handle import RemovableHandle
from .node import Node, not_pickled, visible_attributes


class AccumulateGrad:
    """The end of a path: adds what arrives to its leaf's `.grad`."""

    __slots__ = (
        "variable", "tensor_hooks", "pre_hooks", "post_hooks", "left", "_metadata", "__weakref__",
    )  # fmt: skip
    accumulates = True
    apply_custom = None
    next_functions = ()
    trace = None
    _name = "torch::autograd::AccumulateGrad"
    __reduce_ex__ = not_pickled

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.pre_hooks: dict[int, Any] = {}
        self.post_hooks: dict[int, Any] = {}
        self.left: Any = None  # what the leaf was when it got other memory and another node
        self._metadata: Any = None

    @property
    def graph_order(self) -> tuple[float, float]:
        return (float("inf"), 0)

    name = Node.name
    __call__ = Node.__call__

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata  # type: ignore[no-any-return]

    requires_grad = True
    _input_metadata = Node._input_metadata

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {hex(id(self))}>"

    def next_edges(self) -> list[Any]:
        return []

    def output_kinds(self) -> list[Any]:
        """Give what is known of the leaf."""
        return [self.variable._v if self.left is None else self.left]

    def _sequence_nr(self) -> int:
        return 2**64 - 1  # before all nodes that wait

    def __dir__(self) -> list[str]:
        return visible_attributes(self, "variable")

    def hooked(self) -> bool:
        """Tell whether a hook waits here, the leaf's own included."""
        leaf = self.variable
        waiting = leaf._hooks or leaf._post_accumulate_hooks
        return bool(waiting or self.pre_hooks or self.post_hooks)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn((), grads)` after the gradient was accumulated."""
        handle = RemovableHandle(self.post_hooks)
        self.post_hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grads)` before the gradient is accumulated; it may return new ones."""
        handle = RemovableHandle(self.pre_hooks)
        self.pre_hooks[handle.id] = fn
        return handle
