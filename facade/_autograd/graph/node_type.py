"""`torch.autograd.graph.Node`: all graph nodes are instances of it, and none inherits from it."""

from __future__ import annotations

import abc
from typing import Any

from .accumulate_grad import AccumulateGrad
from .delayed_error import DelayedError, Error, UndefinedGrad
from .node import Node as Recorded
from .python_node import CustomNode

_KINDS = (Recorded, AccumulateGrad, CustomNode, DelayedError, Error, UndefinedGrad)


class Node(abc.ABC):
    """A node of the graph: `isinstance(y.grad_fn, Node)`.

    Args of hooks are gradients, lazy tensors or None.
    """

    @abc.abstractmethod
    def name(self) -> str:
        """Get the node's name, `"AddBackward0"`."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The graph's next nodes, with the number of their output that is used here."""

    @abc.abstractmethod
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes."""

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> Any: ...

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Any) -> None: ...

    @abc.abstractmethod
    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return new ones."""

    @abc.abstractmethod
    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before this node runs; it may return new ones."""

    @classmethod
    def __subclasshook__(cls, subclass: type, /) -> bool:
        if cls is Node and issubclass(subclass, _KINDS):
            return True
        return NotImplemented
