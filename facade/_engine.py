"""The backward pass: PyTorch's engine, walking the graph and recording gradient nodes.

Nodes run when all their gradients have arrived, later-recorded ones first. Nothing is computed
here: what runs is recording, so hooks see lazy tensors and a whole backward is part of the one
program. A backward without hooks through the running trace depends on the trie's state alone;
`_memo.py` remembers where it led.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import threading
from collections.abc import Sequence
from typing import Any

from leafax.functional import Aval, Residual, ResidualCall, vjp_of

from ._budget import cut_for_budget
from ._dtype import of
from ._dual_ops import attach
from ._enter import alias, enter, from_array, make
from ._grad_dtype import wanted
from ._handle import Handle
from ._hooks import after_accumulation, post_hooks, pre_hooks, tensor_hooks
from ._keep import given_of, needed, reads
from ._node import AccumulateGrad, Node
from ._opaque import reached
from ._record import over_budget
from ._saved import FREED, check_versions
from ._silent import by_result, changed
from ._step import step
from ._storage import detach
from ._trace import NOWHERE, Mode, State, Trace, Value, local, resting
from ._underived import refuse

Edge = tuple[Any, int]
_numbers = itertools.count()
accumulating = threading.RLock()  # threads add to the same `.grad` one after the other


def _make_room(depth: int) -> int:
    """Let backward passes nest deeper than Python's limit; returns what to set it to after.

    PyTorch gives deep ones to other threads. A level takes ten Python frames of ours and 0.9 kB
    of C stack, of which threads have 8 MB.
    """
    if not depth or depth % 8 or depth > 4000:
        return 0
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 1000)
    return limit


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
        self.running: set[Any] = set()  # with captures: the nodes that do more than hold one
        self.number = next(_numbers)
        self.current: Any = None  # the node that is being visited
        self.watch: Any = local.watch
        self.callbacks: list[Any] = []  # called once the pass is over

    def run(self) -> dict[Edge, Any]:
        """Walk; returns the captured gradients by edge."""
        mode, hooks = local.mode, local.pack_hooks
        limit = _make_room(len(local.tasks))
        local.set_mode(Mode.of(self.create_graph, mode.inference, mode.autocast))
        local.tasks.append(self)
        try:
            self._walk()
            for callback in self.callbacks:  # one may add others
                callback()
        except Exception:
            if local.anomaly is not None and self.current is not None:
                local.anomaly(self.current)
            raise
        finally:
            local.tasks.pop()
            local.pack_hooks = hooks  # what hooks did to them inside the walk ends with it
            local.set_mode(mode)
            if limit:
                sys.setrecursionlimit(limit)
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
                    if target in buffers or not target.accumulates or target.hooked():
                        push(target)
            passed = None  # what took a gradient may be the last to hold it

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
                    self.running.add(parent)
                    if parent not in needed:
                        needed.add(parent)
                        stack.append(parent)
            if self.accumulate_captured:
                self.running |= self.targets
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
        self.current = node
        wants = self.captures
        runs = wants is None or node in self.running
        if node.hooked():
            self.plain = False
        if wants is not None:
            # PyTorch captures before the hooks of a node that runs, and after those of a tensor
            # where the walk ends.
            seen = grads if runs else self._tensor_hooks(node, grads)
            for out, grad in enumerate(seen):
                if (node, out) in wants and grad is not None:
                    self.captured[(node, out)] = grad
            if not runs:
                return None
        grads = self._tensor_hooks(node, grads)
        if node.pre_hooks:
            grads = pre_hooks(node, grads)
        if not self.plain:
            self._latest_trace = None  # a hook may have written to a saved tensor
        if node.accumulates:
            self._accumulate(node, grads)
            return None
        had_hooks = bool(node.post_hooks)  # a hook that an unpack hook registers sees no gradients
        idle = not any(e is not None and e[0] in needed for e in node.edges())
        if not hasattr(node, "apply_custom") and (idle or all(g is None for g in grads)):
            if node.is_freed():
                raise RuntimeError(FREED)
            passed = [None] * len(node.edges())
        else:
            passed = self._apply(node, grads, needed)
        if node.post_hooks:
            passed = post_hooks(node, passed, grads if had_hooks else [])
        if not self.keep_graph:
            if node.trace is local.trace:
                self.freed.append(node.state)
            node.free()
        if self.watch is not None:
            self.plain = False
            self.watch.see(node, passed)
        return passed

    # ------------------------------------------------------------ hooks

    def _tensor_hooks(self, node: Any, grads: list[Any]) -> list[Any]:
        grads = tensor_hooks(node, grads)
        if not node.accumulates:
            self._retain(node, grads)
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
            fresh = changed(node) if (trace.silent if node.trace is trace else node.saved) else None
            if not fresh and self.create_graph and not local.mode.dual:
                from .autograd._formulas import differentiate

                spelled = differentiate(node, grads, needed)
                if spelled is not None:
                    return spelled
                fresh = by_result(node)
            if fresh:
                self.plain = False
                from .autograd._raw_saved import apply_packed

                return apply_packed(node, grads, needed, fresh)
        edges = node.edges()
        wanted = tuple(k for k, e in enumerate(edges) if e is not None and e[0] in needed)
        refuse(state, wanted)
        floats = given_of(state)
        given = tuple(k for k in floats if k < len(grads) and grads[k] is not None)
        if getattr(getattr(state.call, "op", None), "namespace", "") == "opaque":
            wanted = reached(state, wanted, given)
        if frame is not None:
            self.plain = False
            outs = self._apply_again(frame, node, wanted, given, grads)
        elif node.trace is trace and self.create_graph and _splits(state):
            cts = [_fit(grads[k], state.values[k]) for k in given]
            outs = [_record_one(trace, state, k, given, cts) for k in wanted]
        elif node.trace is trace:
            cts = [_fit(grads[k], state.values[k]) for k in given]
            values = [*state.operands, *[enter(c, trace) for c in cts]]
            call = vjp_of(state.call, len(state.operands), wanted, given)
            differentiable = self.create_graph and _depends(call, values, cts)
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
        differentiable = self.create_graph and _depends(call, values, cts)
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
        differentiable = self.create_graph and _depends(call, values, cts)
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

    def _accumulate(self, node: AccumulateGrad, grads: list[Any]) -> None:
        leaf = node.variable
        grad = grads[0] if grads else None
        if grad is not None and leaf.requires_grad:
            grad = _as_grad_dtype(leaf, grad)
            # A hook of the node sees the gradient that `.grad` holds if nobody else has it.
            alone = bool(node.post_hooks) and sys.getrefcount(grad) <= 4
            with accumulating:
                if leaf._grad is None:
                    leaf._grad = _first(grad, self.create_graph, alone)
                elif not self.create_graph:
                    leaf._grad.add_(grad)
                else:
                    leaf._grad = leaf._grad + grad
            self.effects.append(("leaf", leaf, leaf._grad))
        if node.hooked():
            after_accumulation(node, grads)


def _as_grad_dtype(leaf: Any, grad: Any) -> Any:
    """`grad` in the dtype that the leaf's `grad_dtype` asks for."""
    want = wanted(leaf)
    if want is None or grad._v.dtype == want:
        return grad
    return grad.to(of(want))


def _first(grad: Any, create_graph: bool, share: bool) -> Any:
    """What a leaf's `.grad` becomes; with a graph a copy, as `CopyBackwards` says."""
    if share and not create_graph:
        return detach(grad)
    if create_graph and grad.requires_grad:
        return grad.detach().clone().copy_(grad)
    return _own(grad, create_graph)


def _own(grad: Any, create_graph: bool) -> Any:
    """A tensor of its own with the value of `grad`, as `.grad` holds it."""
    trace = local.trace
    value = enter(grad, trace)
    if create_graph and value.requires_grad:
        return grad.clone()
    kind = resting(value.aval, False, NOWHERE, value.inference)
    return make(alias(trace, value, kind, fresh=True), trace)


def _fit(grad: Any, value: Value) -> Any:
    """`grad` in the shape and dtype of the output that it belongs to."""
    if tuple(grad.shape) != tuple(value.shape):
        grad = grad.expand(value.shape) if grad.dim() <= len(value.shape) else grad
    if grad._v.dtype != value.dtype:
        grad = grad.to(of(value.dtype))
    return grad


def _depends(call: Any, values: Sequence[Any], cts: list[Any]) -> bool:
    """Whether a gradient of `values` (operands, then cotangents) reads what requires grad."""
    if any(c.requires_grad for c in cts):
        return True
    read = reads(call, tuple(v.aval for v in values))
    return any(values[i].requires_grad for i in read)


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


def _splits(state: State) -> bool:
    """Whether gradients that are differentiated again are one node an input, as in PyTorch."""
    if sum(v.requires_grad for v in state.operands) < 2:
        return False
    return getattr(getattr(state.call, "op", None), "namespace", "opaque") != "opaque"


def _record_one(trace: Trace, state: State, k: int, given: Any, cts: list[Any]) -> Any:
    """The gradient of operand `k`, with edges to what it depends on and to nothing else."""
    read = needed(state, (k,))
    missing = tuple([(i, v.aval) for i, v in enumerate(state.operands) if i not in read])
    call = vjp_of(state.call, len(state.operands), (k,), given, missing)
    present = [state.operands[i] for i in sorted(read)]
    differentiable = any(v.requires_grad for v in present) or any(c.requires_grad for c in cts)
    values = [*present, *[enter(c, trace) for c in cts]]
    outs = _record(trace, call, values, None, differentiable)
    if local.mode.dual:
        attach(call, [*present, *cts], outs)
    return outs[0]


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


def run_node(node: Any, grads: tuple[Any, ...]) -> Any:
    """What `grad_fn(*grads)` returns: the gradients that one node passes on."""
    count = len(node.outputs())
    if len(grads) != count:
        raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
    for k, grad in enumerate(grads):
        if grad is not None and not isinstance(grad, Handle):
            raise TypeError(f"argument {k} is not a Variable")
    task = GraphTask([], keep_graph=True, create_graph=local.mode.grad)
    edges = node.edges()
    targets = {e[0] for e in edges if e is not None}
    passed = [None] * len(edges)
    if any(g is not None for g in grads):
        passed = task._apply(node, list(grads), targets)
    found = tuple(None if k is None else passed[k] for k in node.places())
    return found[0] if len(found) == 1 else found


def current_node() -> Any:
    """The node that the innermost backward pass of this thread is visiting, or None."""
    return local.tasks[-1].current if local.tasks else None


def task_number() -> int:
    """The number of the backward pass that walks in this thread, -1 outside of one."""
    return local.tasks[-1].number if local.tasks else -1


def execution_order() -> list[Any]:
    """The nodes of the backward pass that walks in this thread, in the order in which they run.

    Raises:
      RuntimeError: outside of a backward pass, or while `set_multithreading_enabled` says True.
    """
    if not local.tasks:
        raise RuntimeError(
            "_current_graph_task_execution_order should only be called during the backward pass"
        )
    if local.multithreading:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed "
            "with multithreading disabled, e.g. by running:\n\n"
            ">>> with torch.autograd.set_multithreading_enabled(False):\n"
            "...     torch.autograd.grad(...)\n"
        )
    task = local.tasks[-1]
    waiting, needed = task._explore()
    count = itertools.count()
    order: list[Any] = []
    ready = [
        ((-node.order[0], -node.order[1]), next(count), node)
        for node in dict.fromkeys(node for (node, _), _ in task.roots)
        if not waiting.get(node)
    ]
    heapq.heapify(ready)
    while ready:
        node = heapq.heappop(ready)[-1]
        order.append(node)
        for edge in node.edges():
            if edge is None or edge[0] not in needed:
                continue
            waiting[edge[0]] -= 1
            if not waiting[edge[0]]:
                key = -edge[0].order[0], -edge[0].order[1]
                heapq.heappush(ready, (key, next(count), edge[0]))
    return order


def will_execute(node: Any) -> bool:
    """Whether the backward pass that is walking now will run `node`.

    Raises:
      RuntimeError: outside of a backward pass, or for a leaf within `autograd.grad`.
    """
    if not hasattr(node, "next_functions"):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}"
        )
    if not local.tasks:
        raise RuntimeError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    task = local.tasks[-1]
    found = node in task.reached
    if found and node.accumulates and task.captures is not None and not task.accumulate_captured:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(). This is currently not supported."
        )
    return found
