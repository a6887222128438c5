"""Trees of tensors in the words of `torch.func`."""

from __future__ import annotations

from typing import Any

from .._core.tree.trees import TreeSpec, flatten_up_to, tree_unflatten
from .._core.tree.trees import tree_flatten as flatten

__all__ = ["flatten", "flatten_up_to", "spell", "split_aux", "starred", "unflatten"]


def unflatten(spec: TreeSpec, leaves: Any) -> Any:
    return tree_unflatten(leaves, spec)


spell = repr  # the structure as PyTorch's messages have it


class _Star:
    def __repr__(self) -> str:
        return "*"


def starred(spec: TreeSpec) -> str:
    """Spell the structure as its own literal, with stars for leaves."""
    return repr(unflatten(spec, [_Star()] * spec.num_leaves))


def split_aux(prefix: str, output: Any) -> tuple[Any, Any]:
    """Split what a function with `has_aux=True` returned into output and aux.

    Args:
      prefix: of the message, which names the transform.
    """
    if isinstance(output, tuple) and len(output) == 2:
        return output
    raise RuntimeError(
        prefix + "output of function f should be a tuple: (output, aux) if has_aux is True"
    )
