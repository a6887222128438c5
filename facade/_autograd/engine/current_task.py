"""Questions about the backward pass that walks, and single nodes that run outside of one."""

from __future__ import annotations

from typing import Any

from ..._core.handle import Handle
from ..._core.trie import local
from ..extensions import extensions
from .accumulation import copied_like
from .apply_node import apply
from .call_hooks import leaf_hooks
from .ready_queue import ReadyQueue
from .task import GraphTask


def run_node(node: Any, grads: tuple[Any, ...]) -> Any:
    """Run one node, as `grad_fn(*grads)` does; returns the gradients that it passes on."""
    count = len(node.output_kinds())
    if len(grads) != count:
        raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
    for k, grad in enumerate(grads):
        if grad is not None and not isinstance(grad, Handle):
            raise TypeError(f"argument {k} is not a Variable")
    task = GraphTask([], keep_graph=True, create_graph=local.mode.grad)
    if node.accumulates:
        leaf, grad = node.variable, grads[0]
        if grad is not None and leaf._tracked:
            if leaf._grad is None and grad.shape != leaf.shape:
                grad = copied_like(leaf, grad)
            task.add_to(node, grad, False)
        leaf_hooks(node)
        return ()
    edges = node.next_edges()
    targets = {e[0] for e in edges if e is not None}
    passed = [None] * len(edges)
    if any(g is not None for g in grads):
        passed = apply(task, node, list(grads), targets)
    found = tuple(None if k is None else passed[k] for k in node.next_places())
    return found[0] if len(found) == 1 else found


extensions.run_node = run_node


def current_node() -> Any:
    """Get the node that the innermost backward pass of this thread is visiting, or None."""
    return local.autograd.tasks[-1].current if local.autograd.tasks else None


def task_number() -> int:
    """Get the number of the backward pass that walks in this thread, -1 outside of one."""
    return local.autograd.tasks[-1].number if local.autograd.tasks else -1


def execution_order() -> list[Any]:
    """List the nodes of the pass that walks in this thread, in the order in which they run.

    Raises:
      RuntimeError: outside of a backward pass, or while `set_multithreading_enabled` says True.
    """
    if not local.autograd.tasks:
        raise RuntimeError(
            "_current_graph_task_execution_order should only be called during the backward pass"
        )
    if local.settings.multithreading:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed "
            "with multithreading disabled, e.g. by running:\n\n"
            ">>> with torch.autograd.set_multithreading_enabled(False):\n"
            "...     torch.autograd.grad(...)\n"
        )
    task = local.autograd.tasks[-1]
    waiting, needed = task.explore()
    order: list[Any] = []
    ready = ReadyQueue()
    for (node, _), _ in task.roots:
        if not waiting.get(node):
            ready.push(node)
    while ready:
        node = ready.pop()
        order.append(node)
        for edge in node.next_edges():
            if edge is None or edge[0] not in needed:
                continue
            waiting[edge[0]] -= 1
            if not waiting[edge[0]]:
                ready.push(edge[0])
    return order


def will_execute(node: Any) -> bool:
    """Tell whether the backward pass that is walking now will run `node`.

    PyTorch does not count the node at which a pass begins if it is the only one.

    Raises:
      RuntimeError: outside of a backward pass, or for a leaf within `autograd.grad`.
    """
    if not hasattr(node, "next_functions"):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}"
        )
    if not local.autograd.tasks:
        raise RuntimeError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    task = local.autograd.tasks[-1]
    alone = len(task.roots) == 1 and node is task.roots[0][0][0]
    found = node in task.reached and not alone
    if found and node.accumulates and task.captures is not None and not task.accumulate_captured:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(). This is currently not supported."
        )
    return found
