"""PyTorch's `associative_scan`: all partial results of an associative function, in few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..func import vmap
from ..utils._pytree import tree_flatten, tree_unflatten
from ._leaves import cat, check_arguments, flip, stack


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:  # fmt: skip
    """Combine the slices along a dimension, each with all before it.

    Neighbours are combined at once, so that there are about twice as many steps as the length has
    binary digits.

    Args:
      combine_fn: an associative function of two slices, trees like `xs`.
      xs: a tensor or a tree of tensors, of one length along `dim`.
      dim: the dimension.
      reverse: whether to begin at the end.
      combine_mode: "pointwise" of a function that works element by element, else "generic".

    Raises:
      ValueError: an argument is not of its kind, or there is nothing to walk.

    >>> import leafax
    >>> associative_scan(lambda a, b: a * b, leafax.arange(1.0, 6.0), 0)
    tensor([  1.,   2.,   6.,  24., 120.])
    """
    leaves, structure = tree_flatten(xs)
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    check_arguments(ValueError, combine_fn, leaves, dim, reverse)

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        a, b = tree_unflatten(left, structure), tree_unflatten(right, structure)
        return tree_flatten(_combine_slices(a, b))[0]

    _combine_slices = combine_fn if combine_mode == "pointwise" else vmap(combine_fn)
    moved = [x.movedim(dim, 0) for x in leaves]
    found = _scan(combine, [flip(x, [0]) for x in moved] if reverse else moved)
    found = [flip(x, [0]) for x in found] if reverse else found
    return tree_unflatten([x.movedim(0, dim) for x in found], structure)


def _scan(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any]) -> list[Any]:
    n = xs[0].shape[0]
    if n < 2:
        return xs
    pairs = combine([x[: n - n % 2 : 2] for x in xs], [x[1::2] for x in xs])
    odd = _scan(combine, pairs)  # results at the odd places
    if n == 2:
        return [cat([x[:1], y]) for x, y in zip(xs, odd, strict=True)]
    even = combine([y[: (n - 1) // 2] for y in odd], [x[2::2] for x in xs])
    even = [cat([x[:1], e]) for x, e in zip(xs, even, strict=True)]
    return [_interleave(a, b) for a, b in zip(even, odd, strict=True)]


def _interleave(even: Any, odd: Any) -> Any:
    n = odd.shape[0]
    both = stack([even[:n], odd], 1).flatten(0, 1)
    return both if even.shape[0] == n else cat([both, even[n:]])
