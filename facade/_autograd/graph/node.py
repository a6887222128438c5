"""Nodes of the autograd graph, as users see them: `grad_fn` and what hangs on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from leafax.functional.lowering.residuals import Residual
from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.program.dtypes import is_differentiable

from ..._core.gradient_graph import graph
from ..._core.locks import sharing
from ..._core.trie import EXTERNAL, State, Trace, local, resting
from ..._rules.node_edges import gradient_places, places
from ..._rules.saved_columns import active_saves, is_number
from ..._rules.saved_names import names_of
from ..._tracing.inputs import from_array, make
from ..extensions import extensions
from .history import set_history
from .holders import holder_of
from .hook_handle import RemovableHandle
from .input_metadata import Edges, InputMetadata
from .node_metadata import note_node
from .saved_tensors import is_result, original_tensor, tensor_of
from .saved_value import Saved

SET_BY_HAND = float(1 << 62)  # stands for a trace later than any


_SEEN = (
    "_input_metadata", "_sequence_nr", "_set_sequence_nr", "metadata", "name", "next_functions",
    "register_hook", "register_prehook", "requires_grad",
)  # fmt: skip


def not_pickled(node: Any, protocol: Any) -> Any:
    """Refuse to copy or pickle a node: its `__reduce_ex__`."""
    raise TypeError(f"cannot pickle '{type(node).__name__}' object")


def visible_attributes(node: Any, *more: str) -> list[str]:
    """List what `dir` tells of a node: PyTorch's attributes, not the engine's."""
    return [name for name in object.__dir__(node) if name.startswith("__")] + [*_SEEN, *more]


class Node:
    """A node of the graph, PyTorch's `torch.autograd.graph.Node`.

    One subclass a name exists (`AddBackward0`), made when first needed.
    """

    __slots__ = (
        "trace", "state", "_edges", "saved", "packed", "residual", "freed", "pre_hooks",
        "tensor_hooks", "post_hooks", "retains", "frame", "_metadata", "_number", "led_to",
        "__weakref__",
    )  # fmt: skip
    accumulates = False
    _name = "Node"
    __reduce_ex__ = not_pickled

    def __init__(self, trace: Trace, state: State) -> None:
        self.trace: Trace | None = trace
        self.state = state
        self._edges: Any = None
        self.saved: dict[int, Saved] | None = None  # by operand; results by -1 - output
        self.residual: tuple[Residual, tuple[Any, ...]] | None = None
        self.freed = False
        self.packed: dict[int, Any] | None = None  # saved tensors that hooks replaced
        self.tensor_hooks: dict[int, tuple[int, Any]] = {}
        self.pre_hooks: dict[int, Any] = {}
        self.post_hooks: dict[int, Any] = {}
        self.retains: list[tuple[int, Any]] | None = None
        self.frame: Any = None  # the checkpointed call that it belongs to, once its trace is done
        self._metadata: Any = None
        self._number: int | None = None  # set by hand, in place of the state's depth

    def retains_of(self) -> list[tuple[int, Any]]:
        """List `(output, weak reference)` of the tensors that retain their gradient here."""
        if self.retains is not None:
            return self.retains
        if self.trace is None or not self.trace.graph.retains:
            return []
        found = [
            (k, self.trace.graph.retains.get((self.state, k)))
            for k in range(len(self.state.values))
        ]
        return [(k, r) for k, r in found if r is not None]

    def name(self) -> str:
        """Get the node's name, `"AddBackward0"`."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes."""
        if self._metadata is None:
            self._metadata = {}
            if self.trace is not None:
                note_node(self.trace, self.state)
        return self._metadata  # type: ignore[no-any-return]

    @property
    def graph_order(self) -> tuple[float, float]:
        """Nodes recorded later run earlier."""
        if self._number is not None:
            return (SET_BY_HAND, self._number)
        if self.trace is None:
            edges = self._edges
            return (edges.serial, edges.depth or self.state.depth)
        return (self.trace.graph.serial, self.state.depth)

    def _sequence_nr(self) -> int:
        return self.state.depth if self._number is None else self._number

    def _set_sequence_nr(self, number: int) -> None:
        """Set the node's number: of nodes that are ready, those of higher numbers run first."""
        self._number = int(number)
        self.mark_hooked()

    def is_freed(self) -> bool:
        if self.trace is not None and self.state in self.trace.graph.freed:
            return active_saves(self.state)
        return self.freed

    def free(self) -> None:
        """Drop what the gradient reads; nodes that save nothing can run again."""
        self.packed = None
        if self.trace is not None:
            self.trace.graph.freed.add(self.state)
        elif active_saves(self.state):
            # Numbers stay: those that became inputs of the program are among what was saved.
            kinds, saved = self.state.operands, self.saved or {}
            kept = {i: held for i, held in saved.items() if i >= 0 and kinds[i].weak}
            self.freed, self.saved, self.residual = True, kept or None, None

    def leave(self) -> None:
        """No longer hold the trace, which is done and leads to this node."""
        self.next_edges()
        self.freed, self.retains = self.is_freed(), self.retains_of()
        self.trace = None

    def checkpoint(self) -> Any:
        """Return the checkpointed call that the node is part of, None if it is of none."""
        frames = self.trace.graph.frames if self.trace is not None else None
        return frames.get(self.state) if frames else self.frame

    def next_edges(self) -> list[Any]:
        """List `(node, output number)` for each operand of the op, None without gradient."""
        if self._edges is None:
            with sharing:  # other threads that walk the graph find the same nodes
                return self._make_edges()
        return self._edges  # type: ignore[no-any-return]

    def _make_edges(self) -> list[Any]:
        if self._edges is None:
            trace = self.trace
            assert trace is not None
            made = Edges(graph.edge_of(trace, v) for v in self.state.operands)
            if isinstance(self.state.call, VjpCall):  # what it does not read gets no gradient
                led = frozenset(gradient_places(self.state))
                made[:] = [e if k in led else None for k, e in enumerate(made)]
            made.serial = trace.graph.serial
            self._edges = made
        return self._edges  # type: ignore[no-any-return]

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The graph's next nodes, with the number of their output that is used here."""
        edges = self.next_edges()
        found = (None if k is None else edges[k] for k in self.next_places())
        return tuple(e if e is not None else (None, 0) for e in found)

    def next_places(self) -> tuple[int | None, ...]:
        """Map each of the `next_functions` to its place in `next_edges()`, None for a number."""
        return places(self.state)

    def output_kinds(self) -> list[Any]:
        """Give what is known of the outputs that take a gradient."""
        values = list(self.state.values)
        constant = getattr(getattr(self.state.call, "op", None), "constant_outputs", ())
        while values and (not is_differentiable(values[-1].dtype) or len(values) - 1 in constant):
            values.pop()
        return values

    @property
    def apply_custom(self) -> Any:
        """Its gradient by Python code, once hooks packed what it saved; else None."""
        if not self.packed:
            return None
        return partial(extensions.from_stand_ins, self, self.packed)

    def hooked(self) -> bool:
        """Tell whether a hook waits here."""
        return bool(self.tensor_hooks or self.pre_hooks or self.post_hooks)

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return tuple(InputMetadata(v) for v in self.output_kinds())

    requires_grad = True

    def __call__(self, *grads: Any) -> Any:
        """Run this node alone, without hooks; returns one gradient for each next function."""
        return extensions.run_node(self, grads)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return new ones."""
        return self._hook(self.post_hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; it may return new ones."""
        return self._hook(self.pre_hooks, fn)

    def _hook(self, hooks: dict[int, Any], fn: Any) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = fn
        self.mark_hooked()
        return handle

    def mark_hooked(self) -> None:
        """Tell the trace that its remembered passes do not hold for a hooked node."""
        if self.trace is not None:
            self.trace.graph.hooked += 1
            self.trace.graph.hold(self.state, self)

    def __getattr__(self, name: str) -> Any:
        for beginning, attribute in extensions.attributes.items():
            if name.startswith(beginning):
                return attribute(self, name[len(beginning) :])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        tensors = frozenset(getattr(getattr(self.state.call, "op", None), "saves", ()))
        names = names_of(self.name())
        every = tensors if names is None else names
        raw = [f"_raw_saved_{n}" for n in tensors & every if not is_number(self.state, n)]
        return visible_attributes(self, *raw, *(f"_saved_{name}" for name in every))

    def unpack(self, index: int, share: bool = True) -> Any:
        """Get the tensor of operand `index` (or of result `-1 - index`), as it was saved.

        Args:
          share: a result lies where the tensor that the op made does, if somebody has it.
        """
        if self.saved is not None and index in self.saved:
            tensor = self.saved[index].tensor
            if index >= 0:
                return original_tensor(self.saved[index])
            holder = self.saved[index].holder
            holder = holder() if holder is not None else None
            tracked = self.state.values[-1 - index].requires_grad  # indices are not
            if holder is not None and is_result(holder, self, -1 - index):
                out = holder.detach()
                return set_history(out, self, -1 - index) if tracked else out
            out = from_array(tensor._array)
            if not tracked:
                return out
            out._v = resting(out._v.aval, True, EXTERNAL)
            out._node, out._out = self, -1 - index
            return out
        trace = self.trace
        frame = self.checkpoint()
        if frame is not None:
            return frame.unpack(self, index)
        assert trace is not None
        if index < 0:
            value = self.state.values[-1 - index]
            holder = holder_of(value) if share and trace is local.trace else None
            if holder is not None:
                out = holder.detach()
                return set_history(out, self, -1 - index) if value.requires_grad else out
        else:
            return tensor_of(trace, self.state.operands[index])
        return make(value, trace)
