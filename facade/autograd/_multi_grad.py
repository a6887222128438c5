"""Hooks on several tensors at once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from .._autograd.engine.current_task import will_execute
from .._autograd.graph.edges import true_edge
from .._core.trie import local


class _MultiHandle:
    """Remove the hooks of one `register_multi_grad_hook`."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take all of them off."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


_MultiHandle.__module__ = "leafax.autograd.graph"


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., None], *, mode: str = "all"
) -> _MultiHandle:
    """Call `fn` when the gradients of several tensors are known.

    Args:
      tensors: all of them must require grad; with `mode="any"` those that do not are left out.
      fn: with `mode="all"`, called with a list of one gradient (or None) a tensor, once all
        that this backward computes are known; with `mode="any"`, with the first one.

    Returns:
      A handle; `handle.remove()` takes the hooks off.

    Raises:
      AssertionError: with `mode="all"`, for a tensor that does not require grad.
      ValueError: for another mode.
      RuntimeError: with `mode="all"`, in `autograd.grad` for a leaf among the tensors.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        seen: WeakSet[Any] = WeakSet()  # several threads may be in a backward of their own

        @functools.wraps(fn)
        def first(grad: Any) -> None:
            task = current_task()
            with lock:
                if task in seen:
                    return
                seen.add(task)
            fn(grad)

        return _MultiHandle([t.register_hook(first) for t in tensors if t.requires_grad])

    nodes = []
    for t in tensors:
        if not t.requires_grad:
            raise AssertionError("Expected gradient function to be set")
        nodes.append(true_edge(t)[0])
    state: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def get_inner_hook(k: int) -> Callable[[Any], None]:  # PyTorch's names: a warning has them
        def inner_hook(grad: Any) -> None:
            task = current_task()
            with lock:
                if task not in state:
                    state[task] = [[None] * len(nodes), sum(map(will_execute, nodes))]
                found = state[task]
                found[0][k] = grad
                found[1] -= 1
                done = found[1] == 0  # never, if none was expected
            if done:
                fn(state.pop(task)[0])

        return inner_hook

    return _MultiHandle([t.register_hook(get_inner_hook(k)) for k, t in enumerate(tensors)])


def current_task() -> Any:
    """Return the backward pass that is walking in this thread."""
    return local.autograd.tasks[-1]
