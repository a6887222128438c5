"""Results of calls, which each replay makes anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tree.trees import TreeSpec, tree_unflatten
from .capture import Source


def rebuild(
    result: list[Any], spec: TreeSpec, arguments: list[Any], make: Callable[[Any], Any]
) -> Any:
    """Return what a call returns.

    Args:
      result: for each leaf its source, the leaf in a tuple, or what `make` makes a tensor of, one
        for those that are equal.
    """
    made: dict[Any, Any] = {}
    leaves = []
    for found in result:
        if type(found) is tuple:
            leaves.append(found[0])
        elif type(found) is Source:
            leaves.append(found.tensor(arguments))
        else:
            if found not in made:
                made[found] = make(found)
            leaves.append(made[found])
    return leaves[0] if spec.is_leaf() else tree_unflatten(leaves, spec)
