"""Recomputed tensors of a checkpoint, and the tensors that they stand for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from weakref import ref

from .._autograd.graph.history import set_history
from .._core.trie import NOWHERE, State, Value, local, resting
from .._storage.autograd_roles import alias
from .._tracing.inputs import make
from ._group import GraphExecGroup, owner
from ._mismatch import spent

if TYPE_CHECKING:
    from ._frame import Frame


class Latest:
    """Hold what calling the function again recorded.

    Attributes:
      made: the new step of each step that bears a gradient.
      inner: frames of the checkpoints within.
      env: what stands for each value, by number, and `states` for each new step.
      found: the tensors that Functions saved.
      spent: what was read of it.
    """

    def __init__(
        self, made: dict[State, State], inner: dict[State, Any], env: dict[int, Value],
        states: dict[State, State], found: list[Any],
    ) -> None:  # fmt: skip
        self.made, self.inner, self.env = made, inner, env
        self.states, self.found = states, found
        self.numbers = {v.index for s in states for v in s.values}
        now = owner(local.autograd.tasks)
        self.owner = ref(now) if now is not None else lambda: None
        self._trace = ref(local.trace)
        self.spent: set[Any] = set()

    def is_here(self) -> bool:
        """Tell whether it is part of the running trace."""
        return self._trace() is local.trace

    def spend(self, what: Any) -> None:
        """Note that a node or a saved tensor was read.

        Raises:
          CheckpointError: if it had been read before, in the same pass or group.
        """
        if what in self.spent:
            raise spent(GraphExecGroup._get_current_group() is not None)
        self.spent.add(what)


class InThread(threading.local):
    """Hold what a thread has computed again: several may go backward through one call.

    Attributes:
      latest: the last recomputation.
      found: what Functions save as the function is called again, None while it is not.
      left: how much of what the gradients read remains to be recorded.
    """

    latest: Latest | None = None
    found: list[Any] | None = None
    left: tuple[int, int] = (0, 0)


class Recomputed:
    """Stands for a tensor that an `autograd.Function` saved in a checkpointed function.

    Attributes:
      tensor: the tensor, until the call is over.
      edge: where its gradient goes, as in `saved_tensors_hooks.Packed`.
    """

    node: Any = None

    def __init__(self, frame: Frame | None, number: int, tensor: Any, edge: Any) -> None:
        self._frame, self._number, self.tensor, self.edge = frame, number, tensor, edge

    def unpack(self, node: Any) -> Any:
        """Return the saved tensor again, with its place in the graph."""
        if self.tensor is not None:
            t = self.tensor
        else:
            assert self._frame is not None
            t = self._frame.saved_by_function(self._number, list(getattr(node, "arrived", ())))
        if self.edge is None:
            return t
        edge = (node, self.edge) if isinstance(self.edge, int) else self.edge
        return set_history(t.detach(), *edge)


class Again:
    """A node of a checkpointed call as formulas see nodes.

    Attributes:
      recorded: the step that computes its op again, in the running trace.
      operands: what that step takes, with the way that gradients took from the first ones.
    """

    def __init__(self, node: Any, recorded: State, operands: list[Value]) -> None:
        self._node, self.recorded, self.operands = node, recorded, operands
        self.state, self.trace = node.state, node.trace
        self.name, self.next_edges = node.name, node.next_edges
        self.next_places = node.next_places

    def unpack(self, index: int) -> Any:
        """Operand `index`, or result -1 - `index`, as a tensor."""
        trace = local.trace
        if index >= 0:
            return make(self.operands[index], trace)
        value = self.recorded.values[-1 - index]
        t = make(alias(trace, value, resting(value.aval, False, NOWHERE)), trace)
        return set_history(t, self._node, -1 - index)
