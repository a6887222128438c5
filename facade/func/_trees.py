"""Pytrees of tensors, as `torch.func` takes them: dicts, lists, tuples, named tuples, None."""

from __future__ import annotations

from typing import Any

import jax

from .._handle import Handle


def flatten(x: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; None is a leaf, as in PyTorch."""
    return jax.tree.flatten(x, is_leaf=_is_leaf)


def unflatten(treedef: Any, leaves: Any) -> Any:
    return jax.tree.unflatten(treedef, leaves)


def _is_leaf(x: Any) -> bool:
    return isinstance(x, Handle) or x is None


def spell(treedef: Any) -> str:
    """The structure in PyTorch's notation, as its messages have it."""
    return _spell(jax.tree.unflatten(treedef, ["*"] * treedef.num_leaves), 0)


def _spell(x: Any, depth: int) -> str:
    if x == "*":
        return "*"
    pad = ",\n" + "  " * (depth + 1)
    if isinstance(x, dict):
        inner = pad.join(_spell(v, depth + 1) for v in x.values())
        return f"TreeSpec({type(x).__name__}, {list(x)}, [{inner}])"
    if isinstance(x, (tuple, list)):
        inner = pad.join(_spell(v, depth + 1) for v in x)
        return f"TreeSpec({type(x).__name__}, None, [{inner}])"
    return "*"


class _Star:
    def __repr__(self) -> str:
        return "*"


def starred(treedef: Any) -> str:
    """The structure as its own literal, with stars for leaves."""
    return repr(jax.tree.unflatten(treedef, [_Star()] * treedef.num_leaves))


def split_aux(prefix: str, output: Any) -> tuple[Any, Any]:
    """What a function with `has_aux=True` returned, as the pair that it must be.

    Args:
      prefix: of the message, which names the transform.
    """
    if isinstance(output, tuple) and len(output) == 2:
        return output
    raise RuntimeError(
        prefix + "output of function f should be a tuple: (output, aux) if has_aux is True"
    )
