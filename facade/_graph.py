"""The autograd graph as objects: `grad_fn` and what hangs on it.

While a trace runs its graph is in the trie, and nodes are made when someone asks for them. At
a cut the part of the graph that a later `backward()` may need is written out: each node gets
its edges and the arrays that its gradient reads (`keep`). What an earlier backward has freed
is not kept; such nodes can still be walked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import ref

from leafax.functional import (
    Call, Residual, Slot, VjpCall, camel, is_differentiable, needed_inputs, residual_arrays,
    vjp_of,
)  # fmt: skip

from ._dtype import type_string
from ._record import from_array, make
from ._trace import EXTERNAL, LEAF, NODE, State, Trace, Value, local, resting

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


class Saved(NamedTuple):
    """An input or result that a node's gradient reads, and the version it had."""

    tensor: Any
    version: int
    vc: Any  # the live version counter, None if nobody can write to it any more

    @property
    def now(self) -> int:
        return self.version if self.vc is None else int(self.vc[0])


class Keep(NamedTuple):
    """What the run of a program must return for later backwards."""

    states: tuple[State, ...]
    values: tuple[Value, ...]
    residuals: tuple[tuple[State, tuple[int, ...]], ...]


_hook_ids = itertools.count()


class RemovableHandle:
    """Removes a hook; also a context manager."""

    def __init__(self, hooks: dict[int, Any], extra: Any = None) -> None:
        self.id = next(_hook_ids)
        self._hooks: ref[Any] | Any = hooks
        self._extra = extra

    def remove(self) -> None:
        """Take the hook off; calling it again does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class Node:
    """A node of the graph, PyTorch's `torch.autograd.graph.Node`.

    One subclass a name exists (`AddBackward0`), made when first needed.
    """

    __slots__ = (
        "trace", "state", "_edges", "saved", "residual", "freed", "pre_hooks", "tensor_hooks",
        "post_hooks", "retains", "_metadata", "__weakref__",
    )  # fmt: skip
    accumulates = False

    def __init__(self, trace: Trace, state: State) -> None:
        self.trace: Trace | None = trace
        self.state = state
        self._edges: Any = None
        self.saved: dict[int, Saved] | None = None  # by operand; results by -1 - output
        self.residual: tuple[Residual, tuple[Any, ...]] | None = None
        self.freed = False
        self.tensor_hooks: dict[int, tuple[int, Any]] = {}
        self.pre_hooks: dict[int, Any] = {}
        self.post_hooks: dict[int, Any] = {}
        self.retains: list[tuple[int, Any]] | None = None
        self._metadata: Any = None

    def retains_of(self) -> list[tuple[int, Any]]:
        """`(output, weak reference)` of the tensors that retain their gradient here."""
        if self.retains is not None:
            return self.retains
        if self.trace is None or not self.trace.retains:
            return []
        found = [(k, self.trace.retains.get((self.state, k))) for k in range(len(self.state.values))]
        return [(k, r) for k, r in found if r is not None]

    def name(self) -> str:
        """The node's name, `"AddBackward0"`."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata  # type: ignore[no-any-return]

    @property
    def order(self) -> tuple[float, float]:
        """Nodes recorded later run earlier."""
        return (self._serial(), self.state.depth)

    def _serial(self) -> int:
        return self.trace.serial if self.trace is not None else self._edges.serial

    def _sequence_nr(self) -> int:
        return self.state.depth

    def is_freed(self) -> bool:
        if self.trace is not None and self.state in self.trace.freed:
            return active_saves(self.state)
        return self.freed

    def free(self) -> None:
        """Drop what the gradient reads; nodes that save nothing can run again."""
        if self.trace is not None:
            self.trace.freed.add(self.state)
        elif active_saves(self.state):
            self.freed, self.saved, self.residual = True, None, None

    def edges(self) -> list[Any]:
        """For each operand of the op: `(node, output number)`, or None without gradient."""
        if self._edges is None:
            trace = self.trace
            assert trace is not None
            made = Edges(edge_of(trace, v) for v in self.state.operands)
            made.serial = trace.serial
            self._edges = made
        return self._edges  # type: ignore[no-any-return]

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The graph's next nodes, with the number of their output that is used here."""
        edges = self.edges()
        call = self.state.call
        if not isinstance(call, Call):
            return tuple(e if e is not None else (None, 0) for e in edges)
        found: list[tuple[Any, int]] = []

        def visit(template: Any, name: str) -> None:
            if isinstance(template, Slot):
                edge = edges[template.index]
                found.append(edge if edge is not None else (None, 0))
            elif isinstance(template, (tuple, list)):
                for x in template:
                    visit(x, name)
            elif name == "other" and isinstance(template, (int, float, complex)):
                found.append((None, 0))  # a number was wrapped as a tensor without gradient

        for name, a in zip(call.op.parameters, call.args, strict=False):
            visit(a, name)
        for name, a in call.kwargs.items():
            visit(a, name)
        return tuple(found)

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
        """The trace's remembered gradient plans do not hold for hooked nodes."""
        if self.trace is not None:
            self.trace.hooked += 1
            self.trace.grad_fns[self.state] = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return self._saved_attribute(name[len("_saved_") :])
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def _saved_attribute(self, name: str) -> Any:
        call = self.state.call
        op = getattr(call, "op", None)
        if op is None or (name not in op.saves and name not in op.parameters):
            raise AttributeError(f"'{self.name()}' object has no attribute '_saved_{name}'")
        if name not in op.saves:
            return static_argument(call, name)
        if self.is_freed():
            raise RuntimeError(FREED)
        for saved, index in saved_places(self.state):
            if saved == name:
                return self.unpack(index)
        return None

    def unpack(self, index: int) -> Any:
        """The tensor of operand `index` (or of result `-1 - index`), as it was saved."""
        if self.saved is not None and index in self.saved:
            tensor = self.saved[index].tensor
            if index >= 0:
                return tensor
            out = from_array(tensor._array)
            out._v = resting(out._v.aval, True, EXTERNAL)
            out._grad_fn, out._out = self, -1 - index
            return out
        trace = self.trace
        assert trace is not None
        if index < 0:
            value = self.state.values[-1 - index]
        else:
            value = self.state.operands[index]
            source = trace.sources.get(value)
            if source is not None:
                return source
            for r in trace.refs:
                t = r()
                if t is not None and t._v is value:
                    return t
        return make(value, trace)


class Edges(list[Any]):
    """A node's edges, with the number of the trace that recorded them."""

    serial: int = 0


class AccumulateGrad:
    """The end of a path: adds what arrives to its leaf's `.grad`."""

    __slots__ = ("variable", "tensor_hooks", "pre_hooks", "post_hooks", "_metadata", "__weakref__")
    accumulates = True
    next_functions = ()
    trace = None

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.pre_hooks: dict[int, Any] = {}
        self.post_hooks: dict[int, Any] = {}
        self._metadata: Any = None

    @property
    def order(self) -> tuple[float, float]:
        return (float("inf"), 0)

    name = Node.name
    metadata = Node.metadata

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {hex(id(self))}>"

    def edges(self) -> list[Any]:
        return []

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn((), grads)` after the gradient was accumulated."""
        handle = RemovableHandle(self.post_hooks)
        self.post_hooks[handle.id] = fn
        _keep_accumulator(self)
        return handle

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grads)` before the gradient is accumulated; it may return new ones."""
        handle = RemovableHandle(self.pre_hooks)
        self.pre_hooks[handle.id] = fn
        _keep_accumulator(self)
        return handle


def _keep_accumulator(node: AccumulateGrad) -> None:
    # Hooks live as long as the variable does, though the node itself may go.
    node.variable._accumulator_hooks = (node.pre_hooks, node.post_hooks)


def accumulator(t: Any) -> AccumulateGrad:
    """The one `AccumulateGrad` of a leaf."""
    node = t._accumulator() if t._accumulator is not None else None
    if node is None:
        node = AccumulateGrad(t)
        kept = t._accumulator_hooks
        if kept is not None:
            node.pre_hooks, node.post_hooks = kept
        t._accumulator = ref(node)
    return node  # type: ignore[no-any-return]


def edge_of(trace: Trace, value: Value) -> Any:
    """Where the gradient of `value` goes: `(node, output number)`, or None."""
    if not value.requires_grad:
        return None
    edge = value.edge
    assert edge is not None
    if edge.role == NODE:
        return (node_of(trace, edge.state), edge.out)
    source = trace.sources[edge]
    if edge.role == LEAF:
        return (accumulator(source), 0)
    return (source._grad_fn, source._out)


def node_of(trace: Trace, state: State) -> Node:
    """The node of a state of `trace`; the same object as long as somebody holds it."""
    node = trace.grad_fns.get(state)
    if node is None:
        node = node_class(state)(trace, state)
        trace.grad_fns[state] = node
    return node  # type: ignore[no-any-return]


def node_class(state: State) -> type[Node]:
    return _class(backward_name(state.call))


def backward_name(call: Any) -> str:
    if isinstance(call, Call):
        return call.op.backward
    inner = call.call if isinstance(call, VjpCall) else call.source
    op = getattr(inner, "op", None)
    return (camel(op.name) if op is not None else "Vjp") + "BackwardBackward0"


@lru_cache(maxsize=None)
def _class(name: str) -> type[Node]:
    return type(name, (Node,), {"__slots__": (), "__module__": "torch.autograd"})


def grad_fn(t: Any) -> Any:
    """The graph node that made `t`, None for leaves."""
    value = t._v
    if t._stale is not None or (t._store is not None and t._base_ is not None):
        if t._stale is not None:
            from ._record import enter

            value = enter(t, local.trace)
    if value.role == LEAF or not value.requires_grad:
        return None
    if value.index >= 0 and not t._trace.done:
        edge = edge_of(t._trace, value)
        return edge[0] if edge is not None else None
    return t._grad_fn


def gradient_edge(t: Any) -> tuple[Any, int]:
    """`(node, output number)` at which gradients for `t` arrive."""
    fn = grad_fn(t)
    if fn is None:
        return accumulator(t), 0
    value = t._v
    if value.index >= 0 and not t._trace.done and value.edge.role == NODE:
        return fn, value.edge.out
    return fn, t._out


# ---------------------------------------------------------------- what is saved


@lru_cache(maxsize=100_000)
def saved_places(state: State) -> tuple[tuple[str, int], ...]:
    """`(saved name, operand index or -1 - output)` for what PyTorch would save here."""
    call = state.call
    op = getattr(call, "op", None)
    if op is None:
        return ()
    slots = slots_of(call)
    first = op.parameters[1 if op.random else 0] if op.parameters else ""
    found = []
    for name, needed_by in op.saves.items():
        if needed_by != "*":
            param = first if needed_by == "self" else needed_by
            if not any(state.operands[i].requires_grad for i in slots.get(param, ())):
                continue
        if name in ("result", "result0"):
            found.append((name, -1))
        elif name.startswith("result") and name[6:].isdigit():
            found.append((name, -1 - int(name[6:])))
        elif name in slots or name == "self":
            for i in slots.get(first if name == "self" and "self" not in slots else name, ()):
                found.append((name, i))
        else:
            fields = getattr(call.wrap, "_fields", ())
            if name in fields:
                found.append((name, -1 - fields.index(name)))
    return tuple(found)


def slots_of(call: Call) -> dict[str, list[int]]:
    """Parameter name -> the operand indices that it took."""
    slots: dict[str, list[int]] = {}

    def visit(template: Any, name: str) -> None:
        if isinstance(template, Slot):
            slots.setdefault(name, []).append(template.index)
        elif isinstance(template, (tuple, list)):
            for x in template:
                visit(x, name)

    for name, a in zip(call.op.parameters, call.args, strict=False):
        visit(a, name)
    for name, a in call.kwargs.items():
        visit(a, name)
    return slots


def static_argument(call: Call, name: str) -> Any:
    """A static argument under its parameter's name: `grad_fn._saved_dim`."""
    names = dict(zip(call.op.parameters, call.args, strict=False)) | call.kwargs
    if name in names:
        return names[name]
    return call.op.signature.parameters[name].default


def active_saves(state: State) -> bool:
    """Whether the node has anything that a backward without `retain_graph` frees."""
    op = getattr(state.call, "op", None)
    if op is None or not op.saves and op.namespace == "opaque":
        return True
    return bool(saved_places(state))


def modified(value: Value, expected: int, now: int, origin: str) -> RuntimeError:
    """PyTorch's error for a saved tensor that was written to."""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{type_string(value.dtype)} {list(value.shape)}]{origin} is at version "
        f"{now}; expected version {expected} instead. Hint: enable anomaly detection to find the "
        "operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )


def check_versions(node: Node, latest: dict[int, int]) -> None:
    """Raise if a tensor that this node saved was written to since.

    Args:
      latest: the version of each storage of the running trace.
    """
    state = node.state
    overwrites = getattr(getattr(state.call, "op", None), "overwrites", False)
    for name, index in saved_places(state):
        if overwrites and name == "self":
            continue  # PyTorch saves a clone of what an in-place op overwrites
        if node.saved is not None:
            saved = node.saved.get(index)
            if saved is None or saved.now == saved.version:
                continue
            value = state.operands[index] if index >= 0 else state.values[-1 - index]
            raise modified(value, saved.version, saved.now, _origin(value, node, index))
        if node.trace is None:
            continue
        value = state.operands[index] if index >= 0 else state.values[-1 - index]
        now = latest.get(value.storage, 0)
        if now != value.version:
            start = node.trace.versions.get(value.storage, 0)
            raise modified(value, start + value.version, start + now, _origin(value, node, index))


def _origin(value: Value, node: Node, index: int) -> str:
    if index < 0:
        return f", which is output {-1 - index} of {node.name()},"
    edge = node.edges()[index]
    if edge is None or edge[0].accumulates:
        return ""
    return f", which is output {edge[1]} of {edge[0].name()},"


# ---------------------------------------------------------------- over a cut


def to_keep(trace: Trace, live: list[Any]) -> Keep | None:
    """What the graph's live part needs to be differentiated after this cut."""
    stack: list[State] = []
    for t in live:
        value = t._stale if t._stale is not None else t._v
        if value.role == NODE and value.edge.state not in trace.freed:
            stack.append(value.edge.state)
    if trace.grad_fns:
        stack += [s for s, n in trace.grad_fns.items() if not n.is_freed()]
    if not stack:
        return None
    seen: set[State] = set()
    while stack:
        state = stack.pop()
        if state in seen or state in trace.freed:
            continue
        seen.add(state)
        for v in state.operands:
            if v.requires_grad and v.edge is not None and v.edge.role == NODE:
                stack.append(v.edge.state)
    states = tuple(sorted(seen, key=lambda s: s.depth))
    values: dict[Value, None] = {}
    residuals = []
    for state in states:
        for i in needed(state):
            values[state.operands[i]] = None
        for name, index in saved_places(state):
            if index < 0:
                values[state.values[-1 - index]] = None
            elif name:
                values[state.operands[index]] = None
        if state.call.residuals:
            residuals.append((state, wanted_of(state)))
    return Keep(states, tuple(values), tuple(residuals))


def wanted_of(state: State) -> tuple[int, ...]:
    return tuple(i for i, v in enumerate(state.operands) if v.requires_grad)


def given_of(state: State) -> tuple[int, ...]:
    return tuple(k for k, v in enumerate(state.values) if is_differentiable(v.dtype))


_needed: dict[Any, frozenset[int]] = {}


def needed(state: State) -> frozenset[int]:
    """Which operands the gradient of this state reads."""
    wanted = wanted_of(state)
    if not wanted:
        return frozenset()
    given = given_of(state)
    vjp = vjp_of(state.call, len(state.operands), wanted, given)
    avals = (*[v.aval for v in state.operands], *[state.values[k].aval for k in given])
    key = (vjp, avals)
    found = _needed.get(key)
    if found is None:
        found = _needed[key] = needed_inputs(vjp, avals)
    return found


def keep(trace: Trace, recipe: Any, outcome: Any, live: list[Any]) -> None:
    """Write the kept part of the graph out into nodes that stand on their own."""
    kept: Keep = recipe.saves
    counters: dict[int, Any] = {}
    for t in live:
        if t._vc is not None:
            counters[t._v.storage] = t._vc
    residuals = iter(recipe.plan.side.residuals)
    nodes = [node_of(trace, s) for s in kept.states]
    tensors: dict[Value, Any] = {}
    for node in nodes:
        node.edges()
        node.retains = node.retains_of()
    holders = {id(t._v): t for t in live}

    def saved_result(value: Value) -> Saved:
        # Without its grad_fn, which would close a cycle; `unpack` puts it back.
        version = trace.versions.get(value.storage, 0) + value.version
        array = outcome.outputs[recipe.places[value.index]]
        return Saved(from_array(array), version, counters.get(value.storage))

    def saved(value: Value) -> Saved:
        version = trace.versions.get(value.storage, 0) + value.version
        tensor = tensors.get(value)
        if tensor is None:
            holder = holders.get(id(value))
            if holder is not None and holder._array is not None and holder._stale is None:
                tensor = holder if value.role == LEAF or not value.requires_grad else None
            if tensor is None:
                array = outcome.outputs[recipe.places[value.index]]
                tensor = from_array(array)
                edge = edge_of(trace, value)
                if edge is not None:
                    if edge[0].accumulates:
                        tensor = tensor if edge[0].variable._array is None else edge[0].variable
                    else:
                        tensor._v = resting(value.aval, True, EXTERNAL)
                        tensor._grad_fn, tensor._out = edge
            tensors[value] = tensor
        vc = counters.get(value.storage)
        if vc is None and tensor._vc is not None:
            vc = tensor._vc
        return Saved(tensor, version, vc)

    for node in nodes:
        state = node.state
        node.saved = {i: saved(state.operands[i]) for i in needed(state)}
        for _, index in saved_places(state):
            if index >= 0:
                node.saved[index] = saved(state.operands[index])
            else:
                node.saved[index] = saved_result(state.values[-1 - index])
        if state.call.residuals:
            residual = next(residuals)
            node.residual = (residual, residual_arrays(residual, outcome.residuals))
        node.trace = None


def later(trace: Trace, value: Value) -> Node:
    """The node for a tensor that leaves the trace."""
    assert value.edge is not None
    return node_of(trace, value.edge.state)
