"""The backward pass: PyTorch's engine, walking the graph and recording gradient nodes.

Nodes run when all their gradients have arrived, later-recorded ones first. Nothing is computed
here: what runs is recording, so hooks see lazy tensors and a whole backward is part of the one
program. A backward without hooks through the running trace depends on the trie's state alone;
`_memo.py` remembers where it led.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Sequence
from typing import Any

from leafax.functional import Aval, Residual, ResidualCall, vjp_of

from ._dtype import type_string
from ._dual_ops import attach
from ._enter import alias, enter, from_array, make
from ._handle import Handle
from ._keep import given_of, needed
from ._node import AccumulateGrad, Node
from ._record import over_budget, step
from ._run import cut_for_budget
from ._saved import FREED, check_versions
from ._silent import changed
from ._trace import NOWHERE, Mode, State, Trace, Value, local, resting

Edge = tuple[Any, int]
accumulating = threading.RLock()  # threads add to the same `.grad` one after the other


class GraphTask:
    """One call of the engine.

    Args:
      roots: `(edge, gradient)`: where the pass begins.
      keep_graph: leave saved tensors in place.
      create_graph: record the gradients differentiably.
      captures: edges whose gradients are returned rather than accumulated; None accumulates
        into every leaf.
      accumulate_captured: also accumulate into the captured leaves (`backward(inputs=...)`).
    """

    def __init__(
        self,
        roots: Sequence[tuple[Edge, Any]],
        *,
        keep_graph: bool,
        create_graph: bool,
        captures: Sequence[Edge] | None = None,
        accumulate_captured: bool = False,
    ) -> None:
        self.roots = roots
        self.keep_graph, self.create_graph = keep_graph, create_graph
        self.captures = None if captures is None else set(captures)
        self.accumulate_captured = accumulate_captured
        self.targets = {node for node, _ in self.captures or ()}
        self.captured: dict[Edge, Any] = {}
        self.effects: list[tuple[str, Any, Any]] = []
        self.freed: list[State] = []
        self.plain = True  # nothing but the running trace took part
        self.latest: dict[int, int] = {}
        self._latest_trace: Any = None
        self.reached: Any = ()  # the nodes that this pass will visit
        self.watch: Any = local.watch() if local.watch is not None else None

    def run(self) -> dict[Edge, Any]:
        """Walk; returns the captured gradients by edge."""
        mode = local.mode
        local.set_mode(Mode.of(self.create_graph, mode.inference, mode.autocast))
        local.tasks.append(self)
        try:
            self._walk()
            if self.watch is not None:
                self.watch.check()
        finally:
            local.tasks.pop()
            local.set_mode(mode)
        return self.captured

    def _walk(self) -> None:
        waiting, needed = self._explore()
        self.reached = needed
        buffers: dict[Any, list[Any]] = {}
        ready: list[Any] = []
        count = itertools.count()
        queued: set[Any] = set()

        def push(node: Any) -> None:
            if node not in queued:
                queued.add(node)
                heapq.heappush(ready, ((-node.order[0], -node.order[1]), next(count), node))

        for (node, out), grad in self.roots:
            self._add(buffers, node, out, grad)
        for (node, _), _ in self.roots:
            if waiting.get(node, 0) == 0:
                push(node)
        while ready:
            _, _, node = heapq.heappop(ready)
            grads = buffers.pop(node, [])
            passed = self._visit(node, grads, needed)
            for k, edge in enumerate(node.edges()):
                if edge is None or edge[0] not in needed:
                    continue
                target, out = edge
                if passed is not None and passed[k] is not None:
                    self._add(buffers, target, out, passed[k])
                waiting[target] -= 1
                if waiting[target] == 0:
                    if target in buffers or not target.accumulates:
                        push(target)

    def _explore(self) -> tuple[dict[Any, int], set[Any]]:
        """How many gradients each node waits for, and which nodes lead to what is wanted."""
        waiting: dict[Any, int] = {}
        seen: set[Any] = set()
        order: list[Any] = []
        stack = [node for (node, _), _ in self.roots]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            order.append(node)
            for edge in node.edges():
                if edge is not None:
                    stack.append(edge[0])
        if self.captures is None:
            needed = seen
        else:
            needed = {node for node, _ in self.captures if node in seen}
            parents: dict[Any, list[Any]] = {}
            for node in order:
                for edge in node.edges():
                    if edge is not None:
                        parents.setdefault(edge[0], []).append(node)
            stack = list(needed)
            while stack:
                for parent in parents.get(stack.pop(), ()):
                    if parent not in needed:
                        needed.add(parent)
                        stack.append(parent)
        for node in order:
            if node not in needed:
                continue
            for edge in node.edges():
                if edge is not None and edge[0] in needed:
                    waiting[edge[0]] = waiting.get(edge[0], 0) + 1
        return waiting, needed

    def _add(self, buffers: dict[Any, list[Any]], node: Any, out: int, grad: Any) -> None:
        slots = buffers.setdefault(node, [])
        while len(slots) <= out:
            slots.append(None)
        slots[out] = grad if slots[out] is None else slots[out] + grad

    def _visit(self, node: Any, grads: list[Any], needed: set[Any]) -> Any:
        """Run one node's hooks and the node; returns one gradient an edge."""
        grads = self._pre_hooks(node, grads)
        if not self.plain:
            self._latest_trace = None  # a hook may have written to a saved tensor
        wants = self.captures
        if wants is not None:
            for out, grad in enumerate(grads):
                if (node, out) in wants and grad is not None:
                    self.captured[(node, out)] = grad
        if node.accumulates:
            if wants is None or (self.accumulate_captured and (node, 0) in wants):
                if grads and grads[0] is not None:
                    self._accumulate(node, grads[0])
            return None
        if not any(e is not None and e[0] in needed for e in node.edges()):
            if self.accumulate_captured and node in self.targets:
                self._finish(node)
            return None
        if all(g is None for g in grads) and not hasattr(node, "apply_custom"):
            passed = [None] * len(node.edges())
        else:
            passed = self._apply(node, grads, needed)
            if self.watch is not None:
                self.plain = False
                self.watch.see(node, passed)
        if node.post_hooks:
            passed = self._post_hooks(node, passed, grads)
        self._finish(node)
        return passed

    def _finish(self, node: Node) -> None:
        """Drop what the node saved, unless the graph is kept."""
        if node.is_freed():
            raise RuntimeError(FREED)
        if not self.keep_graph:
            if node.trace is local.trace:
                self.freed.append(node.state)
            node.free()

    # ------------------------------------------------------------ hooks

    def _pre_hooks(self, node: Any, grads: list[Any]) -> list[Any]:
        if node.accumulates:
            hooks = node.variable._hooks
            if hooks:
                self.plain = False
                for hook in list(hooks.values()):
                    grads = [_replaced(hook, g) if g is not None else None for g in grads]
        elif node.tensor_hooks:
            self.plain = False
            grads = list(grads)
            for out, hook in list(node.tensor_hooks.values()):
                if out < len(grads) and grads[out] is not None:
                    grads[out] = _replaced(hook, grads[out])
        if not node.accumulates:
            self._retain(node, grads)
        if node.pre_hooks:
            self.plain = False
            for hook in list(node.pre_hooks.values()):
                result = hook(tuple(grads))
                if result is not None:
                    grads = list(result) if isinstance(result, (tuple, list)) else [result]
        return grads

    def _retain(self, node: Node, grads: list[Any]) -> None:
        retains = node.retains_of()
        for out, holder in retains:
            t = holder()
            if t is not None and out < len(grads) and grads[out] is not None:
                if t._grad is None:
                    t._grad = _own(grads[out], self.create_graph)
                else:
                    self.plain = False
                    t._grad = t._grad + grads[out]
                self.effects.append(("retain", holder, t._grad))

    def _post_hooks(self, node: Any, passed: Any, grads: list[Any]) -> Any:
        self.plain = False
        for hook in list(node.post_hooks.values()):
            result = hook(tuple(passed), tuple(grads))
            if result is not None:
                passed = list(result) if isinstance(result, (tuple, list)) else [result]
        return passed

    # ------------------------------------------------------------ nodes

    def _apply(self, node: Node, grads: list[Any], needed: set[Any]) -> list[Any]:
        custom = getattr(node, "apply_custom", None)
        if custom is not None:
            self.plain = False
            return list(custom(grads, needed))
        if node.is_freed():
            raise RuntimeError(FREED)
        state = node.state
        frames = node.trace.frames if node.trace is not None else None
        frame = frames.get(state) if frames else node.frame
        trace = local.trace
        if frame is None:
            self._check(node)
            if trace.silent if node.trace is trace else node.saved:
                fresh = changed(node)
                if fresh:
                    self.plain = False
                    from .autograd._raw_saved import apply_packed

                    return apply_packed(node, grads, needed, fresh)
        edges = node.edges()
        wanted = tuple(k for k, e in enumerate(edges) if e is not None and e[0] in needed)
        floats = given_of(state)
        given = tuple(k for k in floats if k < len(grads) and grads[k] is not None)
        if frame is not None:
            self.plain = False
            outs = self._apply_again(frame, node, wanted, given, grads)
        elif node.trace is trace:
            cts = [_fit(grads[k], state.values[k]) for k in given]
            values = [*state.operands, *[enter(c, trace) for c in cts]]
            call = vjp_of(state.call, len(state.operands), wanted, given)
            differentiable = self.create_graph and _depends(state, cts)
            outs = _record(trace, call, values, state, differentiable)
            if local.mode.dual:
                attach(call, [*state.operands, *cts], outs)
        else:
            self.plain = False
            if over_budget(trace):  # a graph longer than a program may be
                cut_for_budget(trace)
            outs = self._apply_saved(node, wanted, given, grads)
        passed: list[Any] = [None] * len(edges)
        for k, out in zip(wanted, outs, strict=True):
            passed[k] = out
        return passed

    def _apply_again(
        self, frame: Any, node: Node, wanted: Any, given: Any, grads: list[Any]
    ) -> list[Any]:
        """A node of a checkpointed call: from operands that are computed again."""
        state = node.state
        cts = [_fit(grads[k], state.values[k]) for k in given]
        again, operands = frame.operands(state, node, cts, self.create_graph)
        trace = local.trace
        values = [*operands, *[enter(c, trace) for c in cts]]
        call = vjp_of(state.call, len(operands), wanted, given)
        differentiable = self.create_graph and _depends(state, cts)
        return _record(trace, call, values, again, differentiable)

    def _apply_saved(self, node: Node, wanted: Any, given: Any, grads: list[Any]) -> list[Any]:
        """A node of an earlier program: from its residuals, or from the inputs it kept."""
        state = node.state
        trace = local.trace
        cts = [_fit(grads[k], state.values[k]) for k in given]
        if node.residual is not None and not self.create_graph and not local.mode.dual:
            residual, arrays = node.residual
            have = tuple(i for i, v in enumerate(state.operands) if v.requires_grad)
            call: Any = _residual_call(state, residual, given, tuple(have.index(k) for k in wanted))
            values = [enter(from_array(a), trace) for a in arrays]
            return _record(trace, call, [*values, *[enter(c, trace) for c in cts]], None, False)
        saved = node.saved or {}
        if node.trace is not None and node.saved is None:
            if state in node.trace.freed:
                if needed(state):
                    raise RuntimeError(FREED)
                present = {}
            else:
                present = {i: node.unpack(i) for i in range(len(state.operands))}
        else:
            present = {i: saved[i].tensor for i in range(len(state.operands)) if i in saved}
        missing = tuple((i, v.aval) for i, v in enumerate(state.operands) if i not in present)
        call = vjp_of(state.call, len(state.operands), wanted, given, missing)
        values = [enter(present[i], trace) for i in sorted(present)]
        values += [enter(c, trace) for c in cts]
        differentiable = self.create_graph and _depends(state, cts)
        outs = _record(trace, call, values, None, differentiable)
        if local.mode.dual:
            attach(call, [*[present[i] for i in sorted(present)], *cts], outs)
        return outs

    def _check(self, node: Node) -> None:
        trace = local.trace
        if node.trace is trace and self._latest_trace is not trace:
            self.latest = {}
            for s in trace.state.path():
                for v in s.values:
                    if v.version > self.latest.get(v.storage, 0):
                        self.latest[v.storage] = v.version
            self._latest_trace = trace
        check_versions(node, self.latest)

    def _accumulate(self, node: AccumulateGrad, grad: Any) -> None:
        leaf = node.variable
        with accumulating:
            if leaf._grad is None:
                leaf._grad = _own(grad, self.create_graph)
            elif not self.create_graph:
                leaf._grad.add_(grad)
            else:
                leaf._grad = leaf._grad + grad
        self.effects.append(("leaf", leaf, leaf._grad))
        if node.post_hooks:
            self.plain = False
            for hook in list(node.post_hooks.values()):
                hook((), (grad,))
        hooks = leaf._post_accumulate_hooks
        if hooks:
            self.plain = False
            for hook in list(hooks.values()):
                hook(leaf)


def _replaced(hook: Any, grad: Any) -> Any:
    """What a hook makes of a gradient; None keeps it."""
    result = hook(grad)
    if result is None:
        return grad
    if not isinstance(result, Handle):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    name = getattr(hook, "__name__", None) or type(hook).__name__
    if result._v.dtype != grad._v.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {type_string(grad._v.dtype)} got "
            f"{type_string(result._v.dtype)})"
        )
    if result._v.shape != grad._v.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return result


def _own(grad: Any, create_graph: bool) -> Any:
    """A tensor of its own with the value of `grad`, as `.grad` holds it."""
    trace = local.trace
    value = enter(grad, trace)
    if create_graph and value.requires_grad:
        return grad
    kind = resting(value.aval, False, NOWHERE, value.inference)
    return make(alias(trace, value, kind, fresh=True), trace)


def _fit(grad: Any, value: Value) -> Any:
    """`grad` in the shape and dtype of the output that it belongs to."""
    if tuple(grad.shape) != tuple(value.shape):
        grad = grad.expand(value.shape) if grad.dim() <= len(value.shape) else grad
    if grad._v.dtype != value.dtype:
        grad = grad.to(dtype_of(value))
    return grad


def dtype_of(value: Value) -> Any:
    from ._dtype import of

    return of(value.dtype)


def _depends(state: State, cts: list[Any]) -> bool:
    """Whether the gradient of this state reads anything that requires grad."""
    if any(c.requires_grad for c in cts):
        return True
    return any(state.operands[i].requires_grad for i in needed(state))


def _record(
    trace: Trace, call: Any, values: list[Value], primal: State | None, differentiable: bool
) -> list[Any]:
    """Record a gradient call; its results as tensors."""
    key = ("grad", call, *values)
    state = trace.state.next.get(key)
    if state is None:
        state = step(trace, key, call, values, differentiable=differentiable, primal=primal)
    trace.state = state
    return [make(v, trace) for v in state.values]


_residual_calls: dict[Any, ResidualCall] = {}


def _residual_call(state: State, residual: Residual, given: Any, take: Any) -> ResidualCall:
    key = (id(residual), given, take)
    call = _residual_calls.get(key)
    if call is None:
        have = [v for v in state.operands if v.requires_grad]
        avals = tuple(Aval(tuple(v.shape), v.dtype) for v in have)
        call = ResidualCall(
            state.call, residual.treedef, residual.meta, len(residual.places), given, take, avals
        )
        call_keep.append(residual)
        _residual_calls[key] = call
    return call


call_keep: list[Any] = []  # residuals whose id is a key above stay alive with it
