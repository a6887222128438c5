"""Which of a model's tensors a pattern means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from leafax.functional import select

Tensors = dict[str, Any]


def near(name: str, known: Iterable[str]) -> str:
    """The known names most like `name`, for a message."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.0)
    return ", ".join(f"`{one}`" for one in found) or "none"


def choose(tensors: Tensors, what: tuple[Any, ...]) -> set[str]:
    """Paths that globs, regular expressions or predicates select; all of them without any."""
    if not what:
        return set(tensors)
    chosen: set[str] = set()
    for one in what:
        several = isinstance(one, (list, tuple, set, frozenset))
        if not (isinstance(one, (str, re.Pattern)) or callable(one) or several):
            raise TypeError(
                f"`{type(one).__name__}` selects no parameters here: give globs, compiled regular "
                f"expressions, or a predicate `(path, tensor) -> bool`"
            )
        mask = select(tensors, one)
        chosen.update(name for name, yes in mask.items() if yes)
    return chosen


def with_their_parameters(chosen: set[str], parameters: Tensors, stats: Tensors) -> set[str]:
    """Statistics that were chosen, or all of whose module's parameters were."""
    siblings: dict[str, list[str]] = {}
    for name in parameters:
        siblings.setdefault(name.rpartition(".")[0], []).append(name)
    beside = {name: siblings.get(name.rpartition(".")[0], []) for name in stats}
    return {n for n in stats if n in chosen or (beside[n] and chosen.issuperset(beside[n]))}
