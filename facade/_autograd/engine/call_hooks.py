"""Calling hooks in the engine's walk, with PyTorch's checks of what they return."""

from __future__ import annotations

from typing import Any

from ..._core.dtypes import tensor_string
from ..._core.handle import Handle

Grads = list[Any]


def tensor_hooks(node: Any, grads: Grads) -> Grads:
    """Call the hooks of `node`'s outputs (or of its leaf) on the gradients; returns what they make.

    They are called with None where no gradient arrived.
    """
    if node.accumulates:
        hooks = node.variable._hooks
        if hooks:
            grads = grads or [None]
            for hook in list(hooks.values()):
                grads = [replaced(hook, grads[0])]
        return grads
    if node.tensor_hooks:
        grads = padded(node, grads)
        for out, hook in list(node.tensor_hooks.values()):
            grads[out] = replaced(hook, grads[out])
    return grads


def pre_hooks(node: Any, grads: Grads) -> Grads:
    """Call the node's own prehooks on the gradients of all its outputs."""
    grads = padded(node, grads)
    for hook in list(node.pre_hooks.values()):
        grads = _all_replaced(hook, hook(tuple(grads)), grads)
    return grads


def post_hooks(node: Any, passed: Grads, grads: Grads | None) -> Grads:
    """Call the node's hooks on the gradients that it passes on, one an edge.

    Hooks see one gradient for each of the node's `next_functions`, so None for a number; and what
    the node was given, `grads`, of which nothing is left if it had no hooks then.
    """
    places = node.next_places()
    given = [None if k is None else passed[k] for k in places]
    seen = () if grads is None else tuple(padded(node, grads))
    for hook in list(node.post_hooks.values()):
        given = _all_replaced(hook, hook(tuple(given), seen), given)
    passed = list(passed)
    for k, grad in zip(places, given, strict=True):
        if k is not None:
            passed[k] = grad
    return passed


def after_accumulation(node: Any, grads: Grads) -> None:
    """Call the hooks of a leaf whose gradient was accumulated, then those of its node.

    Raises:
      RuntimeError: if one of the leaf's returns another tensor.
    """
    leaf_hooks(node)
    for hook in list(node.post_hooks.values()):
        hook((), tuple(grads or [None]))


def leaf_hooks(node: Any) -> None:
    """Call the hooks of a leaf whose gradient was accumulated.

    Raises:
      RuntimeError: if one returns another tensor; the next sees that one.
    """
    hooks = node.variable._post_accumulate_hooks
    seen, kept = node.variable, True
    for hook in list(hooks.values()) if hooks else ():
        before, seen = seen, replaced(hook, seen)
        kept = kept and seen is before
    if not kept:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def padded(node: Any, grads: Grads) -> Grads:
    """Pad to one gradient (or None) for each output of `node`."""
    count = len(node.output_kinds())
    return list(grads) + [None] * (count - len(grads))


def _all_replaced(hook: Any, result: Any, grads: Grads) -> Grads:
    if result is None:
        return grads
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(grads):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got "
            f"{len(result)}, but expected {len(grads)})"
        )
    for grad, new in zip(grads, result, strict=True):
        if new is not None:
            _check(hook, grad, new)
    return list(result)


def replaced(hook: Any, grad: Any) -> Any:
    """Call a tensor's hook on its gradient; None keeps it."""
    result = hook(grad)
    if result is None:
        return grad
    _check(hook, grad, result)
    return result


def _check(hook: Any, grad: Any, result: Any) -> None:
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(result, Handle):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result._v.dtype != grad._v.dtype:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was "
            f"{tensor_string(grad._v.dtype)} got {tensor_string(result._v.dtype)})"
        )
    if result._v.shape != grad._v.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")
