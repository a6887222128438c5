"""A tensor with its tangents of forward mode, and theirs: `vmap` maps all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core.dual_levels import set_tangent
from .._core.trie import local
from .._dispatch.tangents import get_tangent


def flatten_tangents(x: Any) -> Iterator[Any]:
    """Yield a tensor, its tangents of the open levels, and their tangents."""
    yield x
    for level in local.mode.dual:
        along = get_tangent(x, level)
        if along is not None:
            yield from flatten_tangents(along)


def unflatten_tangents(like: Any, parts: Iterator[Any]) -> Any:
    """Return the tensor whose `flatten_tangents`, structured as that of `like`, is `parts`."""
    out = next(parts)
    for level in local.mode.dual:
        along = get_tangent(like, level)
        if along is not None:
            set_tangent(out, level, unflatten_tangents(along, parts))
    return out
