"""Pairs that a module's `update` is given in place of a mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def check_pairs(pairs: Iterable[Any], name: str) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of a key and a value; raise in PyTorch's words at the first that is none.

    Args:
      name: of the class whose `update` it is.
    """
    for j, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{j} should be Iterable; is" + type(pair).__name__
            )
        if not len(pair) == 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{name} update sequence element #{j} has length {len(pair)}; 2 is required"  # type: ignore[arg-type]
            )
        key, value = pair
        yield key, value
