"""PyTorch's `scan`: a carried value through a loop, and what each turn yields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.handle import Handle
from ..utils._pytree import tree_flatten, tree_unflatten
from ._leaves import check_arguments, slices_of, stacked


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Call a function along a dimension, each time with the value that it carried on.

    Args:
      combine_fn: takes the carried value and a slice, returns the next value and what is kept.
      init: a tensor or a tree of tensors: the carried value at first.
      xs: a tensor or a tree of tensors, of one length along `dim`.
      dim: the dimension.
      reverse: whether to begin at the end; what is kept lies as the slices do.

    Returns:
      The last carried value, and what was kept, stacked along dimension 0.

    Raises:
      RuntimeError: an argument is not of its kind, or there is nothing to walk.

    >>> import leafax
    >>> scan(lambda c, x: (c + x, c * x), leafax.tensor(0.0), leafax.arange(4.0))
    (tensor(6.), tensor([0., 0., 2., 9.]))
    """
    carried, carried_structure = tree_flatten(init)
    if not carried:
        raise RuntimeError("scan() operator requires init leaves.")
    for x in carried:
        if not isinstance(x, Handle):
            raise RuntimeError(f"All init leaves must be a Tensor but got {x}")
    leaves, structure = tree_flatten(xs)
    check_arguments(RuntimeError, combine_fn, leaves, dim, reverse)
    slices = slices_of(leaves, structure, dim)
    value, kept = tree_unflatten(carried, carried_structure), []
    for each in reversed(slices) if reverse else slices:
        value, found = combine_fn(value, each)
        kept.append(found)
    return value, stacked(reversed(kept) if reverse else kept)
