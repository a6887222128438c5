"""PyTorch's `torch.fx._pytree`: trees taken apart along a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tree.trees import TreeSpec, flatten_up_to

SUPPORTED_NODES: dict[type, Callable[[Any, TreeSpec], list[Any]]] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, Callable[[Any, TreeSpec], bool] | None] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Any, flatten_fn_exact_match_spec: Any = None
) -> None:
    """Tell how nodes of a class are taken apart along a structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Return the subtrees at the places of a structure's leaves; the root may be a list."""
    if spec.is_leaf():
        return [pytree]
    return [x for child, part in zip(spec.children(), _parts(pytree, spec), strict=True)
            for x in flatten_up_to(child, part)]  # fmt: skip


def _parts(pytree: Any, spec: TreeSpec) -> list[Any]:
    if spec.type in SUPPORTED_NODES:
        return SUPPORTED_NODES[spec.type](pytree, spec)
    if isinstance(pytree, (list, tuple)):
        return list(pytree)
    return flatten_up_to(TreeSpec(spec.type, spec.context, [TreeSpec(None, None, ())] *
                                  spec.num_children), pytree)  # fmt: skip
