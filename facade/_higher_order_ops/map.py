"""PyTorch's `map` of control flow: a function called for each element of dimension 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..utils._pytree import tree_flatten
from ._leaves import slices_of, stacked


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:  # noqa: A001
    """Call a function for each slice along dimension 0, and stack its results.

    Args:
      f: takes a slice of each tensor of `xs`, and `args`.
      xs: a tensor or a tree of tensors, of one length.
      args: further arguments, the same each time.

    >>> import leafax
    >>> map(lambda x, y: x.sum() + y, leafax.ones(2, 3), 1)
    tensor([4., 4.])
    """
    leaves, structure = tree_flatten(xs)
    return stacked([f(each, *args) for each in slices_of(leaves, structure, 0)])
