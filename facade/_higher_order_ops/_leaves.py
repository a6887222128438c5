"""Parts that scans share: checks of their arguments, and functions that put slices together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from leafax.functional.program.op import TABLE

from .._core.handle import Handle
from .._ops.calls.functions import function
from ..utils._pytree import tree_flatten, tree_unflatten

stack, cat, flip = (function(TABLE[name]) for name in ("stack", "cat", "flip"))
_LENGTHS = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"


def slices_of(leaves: Sequence[Any], structure: Any, dim: int) -> list[Any]:
    """Return the slices of a tree of tensors along a dimension, each a tree."""
    slices = zip(*[x.unbind(dim) for x in leaves], strict=True)
    return [tree_unflatten([*each], structure) for each in slices]


def stacked(trees: Iterable[Any]) -> Any:
    """Return trees of tensors as one, stacked along dimension 0."""
    found = [tree_flatten(tree) for tree in trees]
    columns = zip(*[leaves for leaves, _ in found], strict=True)
    return tree_unflatten([stack([*column]) for column in columns], found[0][1])


def check_arguments(
    error: type[Exception], combine_fn: Any, xs: Sequence[Any], dim: Any, reverse: Any
) -> None:
    """Raise PyTorch's errors about what any scan is called with.

    Args:
      error: their class.
      combine_fn: what it calls.
      xs: the leaves that it walks along `dim`.
      dim: a number.
      reverse: whether it begins at the end.
    """
    if not callable(combine_fn):
        raise error(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise error(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    for x in xs:
        if not isinstance(x, Handle):
            raise error(f"All xs leaves must be a Tensor but got {x}")
    if any(not -x.dim() <= dim < x.dim() or x.shape[dim] == 0 for x in xs):
        raise error(_LENGTHS)
