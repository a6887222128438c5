"""Arguments of a transform as fresh leaves, and its results without the graph of those.

An argument that takes part in an outer gradient is viewed, any other is a new leaf. A result is
given away without a graph if nothing but such leaves is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._autograd.graph.edges import grad_fn
from .._core.dual_levels import copy_tangents, set_tangent
from .._core.grad_modes import within
from .._core.handle import Handle
from .._core.trie import Mode, local
from .._storage.shared_storage import storage_of
from ._trees import flatten, unflatten


@contextmanager
def recording_gradients(grad: bool = True) -> Iterator[None]:
    """Record the block outside of inference mode, with gradients if `grad` says so."""
    with within(Mode.of(grad, False, local.mode.autocast)):
        yield


def lift(x: Any) -> Any:
    """Return the same value as a tensor whose gradient can be asked for."""
    x = as_normal_tensor(x)
    if not x._tracked:
        return make_leaf(detach_keeping_tangents(x))
    out = x.view_as(x)
    storage_of(out)
    out._base_, out._blens = None, ()  # it shares memory; its history is not read anew from `x`
    return out


def as_normal_tensor(x: Any) -> Any:
    """Return `x`, or a copy of an inference tensor, of which autograd is never asked."""
    return detach_keeping_tangents(x.clone()) if x._v.inference else x


def make_leaf(x: Any) -> Any:
    """Make `x` a leaf that requires grad, inside transforms too, and return it."""
    if x.is_floating_point() or x.is_complex():
        x._set_role(True)
        return x
    return x._set_requires_grad(True)


def detach_keeping_tangents(x: Any) -> Any:
    """Return `x` without its graph; tangents of forward mode stay."""
    return copy_tangents(x, x.detach())


def lift_tree(tree: Any) -> tuple[Any, list[Any]]:
    """Lift all tensors of a tree; return the tree, and those tensors."""
    leaves, treedef = flatten(tree)
    for x in leaves:
        if not isinstance(x, Handle):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    lifted = [lift(x) for x in leaves]
    return unflatten(treedef, lifted), lifted


def lower(x: Any, private: list[Any]) -> Any:
    """Return `x` for the caller: without a graph if only `private` leaves are in it."""
    if not isinstance(x, Handle):
        return x
    out = _lower(x, private)
    for level, along in list((x._duals or {}).items()):
        set_tangent(out, level, lower(along, private))
    return out


def _lower(x: Any, private: list[Any]) -> Any:
    if not x._tracked:
        return x
    if not local.mode.grad:  # the transform itself was called without gradients
        return detach_keeping_tangents(x)
    own = {id(t) for t in private}
    stack, seen = [grad_fn(x)], set()
    if stack[0] is None:
        return detach_keeping_tangents(x) if id(x) in own else x  # type: ignore[attr-defined]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.accumulates:
            if id(node.variable) not in own and not node.variable._ended:
                return x
        else:
            stack += [e[0] for e in node.next_edges() if e is not None]
    return detach_keeping_tangents(x)


def end_leaves(leaves: list[Any]) -> list[Any]:
    """Mark leaves of a function that has returned: transforms around it take them for constants."""
    for t in leaves:
        t._ended = True
    return leaves


def lower_tree(tree: Any, private: list[Any]) -> Any:
    """Lower each tensor of what a function returned beside its output."""
    leaves, treedef = flatten(tree)
    for x in leaves:
        if not isinstance(x, Handle):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
    return unflatten(treedef, [lower(x, private) for x in leaves])
