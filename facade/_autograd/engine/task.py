"""The backward pass: PyTorch's engine, walking the graph and recording gradient nodes.

Nodes run when all their gradients have arrived, later-recorded ones first. Nothing is computed
here: what runs is recording, so hooks see lazy tensors and a whole backward is part of the one
program. A backward without hooks through the running trace depends on the trie's state alone;
`memo` remembers where it led.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Sequence
from typing import Any

from ..._core.trie import Mode, State, local
from ..._core.warn_once import warn_once
from ..._tracing.jax_transforms import refuse_gradient
from ..graph.accumulate_grad import AccumulateGrad
from ..graph.node import Node
from ..graph.version_checks import check_versions, latest_versions
from .accumulation import as_own_tensor, first_gradient, in_grad_dtype, in_shape_of
from .apply_node import apply, fitted, fitted_roots, idle
from .call_hooks import after_accumulation, post_hooks, pre_hooks, tensor_hooks
from .layout_contract import layout_warnings
from .ready_queue import ReadyQueue, make_room

Edge = tuple[Any, int]
_numbers = itertools.count()
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
        self.passed: list[State] = []  # of the running trace
        self.plain = True  # nothing but the running trace took part
        self.numbered = False  # whether it read a number that is an input of the program
        self.reached: Any = ()  # the nodes that this pass will visit
        self.running: set[Any] = set()  # with captures: the nodes that do more than hold one
        self.looking = False  # whether somebody can look at a gradient on its way
        self.number = next(_numbers)
        self.current: Any = None  # the node that is being visited
        self.watch: Any = local.settings.watch
        self.callbacks: list[Any] = []  # called once the pass is over
        self.warnings: list[tuple[str, str]] = []  # given then, as PyTorch gives its own

    def run(self) -> dict[Edge, Any]:
        """Walk the graph; returns the captured gradients by edge."""
        mode, hooks = local.mode, local.autograd.pack_hooks
        limit = make_room(len(local.autograd.tasks))
        local.set_mode(Mode.of(self.create_graph, mode.inference, mode.autocast))
        local.autograd.tasks.append(self)
        try:
            self._walk()
            for callback in self.callbacks:  # one may add others
                callback()
        except Exception:
            if local.settings.anomaly is not None and self.current is not None:
                local.settings.anomaly(self.current)
            raise
        finally:
            local.autograd.tasks.pop()
            local.autograd.pack_hooks = hooks  # what hooks did to them inside the walk ends with it
            local.set_mode(mode)
            if limit:
                sys.setrecursionlimit(limit)
            for text, key in self.warnings:
                warn_once(text, key)
        return self.captured

    def _walk(self) -> None:
        waiting, needed = self.explore()
        self.reached = needed
        buffers: dict[Any, list[Any]] = {}
        ready = ReadyQueue()
        for (node, out), grad in fitted_roots(self.roots) if local.turned else self.roots:
            self._add(buffers, node, out, grad)
        alone = len(self.roots) == 1  # its hooks are called even if it leads to nothing wanted
        for (node, _), _ in self.roots:
            if waiting.get(node, 0) == 0 and (alone or node in needed):
                ready.push(node)
        while ready:
            node = ready.pop()
            grads = buffers.pop(node, [])
            passed = self._visit(node, grads, needed)
            for k, edge in enumerate(node.next_edges()):
                if edge is None or edge[0] not in needed:
                    continue
                target, out = edge
                if passed is not None and passed[k] is not None:
                    self._add(buffers, target, out, passed[k])
                waiting[target] -= 1
                if waiting[target] == 0:
                    if target in buffers or not target.accumulates or target.hooked():
                        ready.push(target)
            passed = None  # what took a gradient may be the last to hold it

    def explore(self) -> tuple[dict[Any, int], set[Any]]:
        """Count the gradients that nodes wait for, and find those that lead to what is wanted."""
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
            for edge in node.next_edges():
                if edge is not None:
                    stack.append(edge[0])
        self.looking = self.captures is not None or any(map(_shown, order))
        if self.captures is None:
            needed = seen
        else:
            needed = {node for node, _ in self.captures if node in seen}
            parents: dict[Any, list[Any]] = {}
            for node in order:
                for edge in node.next_edges():
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
            for edge in node.next_edges():
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
        if node.accumulates:
            self._accumulate(node, grads)
            return None
        had_hooks = bool(node.post_hooks)  # a hook that an unpack hook registers sees no gradients
        last = not any(e is not None and e[0] in needed for e in node.next_edges())
        if node.apply_custom is None and (last or all(g is None for g in grads)):
            idle(self, node, last)
            passed = [None] * len(node.next_edges())
        else:
            passed = apply(self, node, grads, needed)
            if local.turned:
                passed = fitted(node, passed)
        if node.post_hooks:
            passed = post_hooks(node, passed, grads if had_hooks else None)
        if node.trace is local.trace:
            self.passed.append(node.state)
        if not self.keep_graph:
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
                with accumulating:
                    if t._grad is None:
                        t._grad = as_own_tensor(grads[out], self.create_graph)
                    else:
                        self.plain = False
                        t._grad = t._grad + grads[out]
                self.effects.append(("retain", holder, t._grad))

    # ------------------------------------------------------------ nodes

    def check(self, node: Node) -> None:
        trace = node.trace  # another thread's, if that has it pending
        check_versions(node, {} if trace is None else latest_versions(trace.state))

    def _accumulate(self, node: AccumulateGrad, grads: list[Any]) -> None:
        leaf = node.variable
        grad = grads[0] if grads else None
        if grad is not None and node.left is None and leaf._interior():
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if grad is not None and leaf._tracked:
            grad = in_grad_dtype(leaf, grad, node.left)
            # A hook of the node sees the gradient that `.grad` holds if nobody else has it.
            asked = bool(node.post_hooks) or not local.settings.grad_layout
            alone = asked and sys.getrefcount(grad) <= 3
            self.add_to(node, grad, alone)
        if node.hooked():
            after_accumulation(node, grads)

    def add_to(self, node: AccumulateGrad, grad: Any, alone: bool) -> None:
        """Add to the leaf's `.grad`, which may hold a first gradient itself if it is `alone`."""
        leaf = node.variable
        refuse_gradient(leaf)
        with accumulating:
            if leaf._grad is None:
                if local.turned and grad._v.shape != leaf._v.shape:
                    self.plain = False
                    grad = in_shape_of(leaf, grad)
                strides = leaf._v.strides if node.left is None else None
                leaf._grad = first_gradient(grad, self.create_graph, alone, strides)
            else:
                if not self.create_graph:
                    leaf._grad.add_(grad)
                else:
                    leaf._grad = leaf._grad + grad
                told = leaf._grad._shares or leaf._grad._v.strides is not leaf._v.strides
                if told and local.settings.grad_layout:
                    self.warnings += layout_warnings(leaf, self.create_graph)
        self.effects.append(("leaf", leaf, leaf._grad))


def _shown(node: Any) -> bool:
    """Tell whether the user sees the gradients that reach a node."""
    return node.hooked() or node.apply_custom is not None
