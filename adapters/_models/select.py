"""Selection of a model's tensors by pattern."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from leafax.functional.program.paths import select

Tensors = dict[str, Any]


def near(name: str, known: Iterable[str]) -> str:
    """Return the known names most like `name`, for a message."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.0)
    return ", ".join(f"`{one}`" for one in found) or "none"


def choose(
    tensors: Tensors, what: tuple[Any, ...], classes: Callable[[], dict[str, type]]
) -> set[str]:
    """Select paths by globs, regular expressions, predicates or module classes.

    Args:
      tensors: by path.
      what: patterns; all tensors without any.
      classes: tells the class of each submodule by path.
    """
    if not what:
        return set(tensors)
    chosen: set[str] = set()
    for one in what:
        if isinstance(one, type):
            chosen |= _below(tensors, one, classes())
            continue
        if isinstance(one, (list, tuple, set, frozenset)):
            chosen |= choose(tensors, tuple(one), classes)
            continue
        if not (isinstance(one, (str, re.Pattern)) or callable(one)):
            raise TypeError(
                f"`{type(one).__name__}` selects no parameters here: give globs, compiled regular "
                f"expressions, module classes, or a predicate `(path, tensor) -> bool`"
            )
        mask = select(tensors, one)
        chosen.update(name for name, yes in mask.items() if yes)
    return chosen


def _below(tensors: Tensors, kind: type, classes: dict[str, type]) -> set[str]:
    """Return what lies in submodules of a class."""
    parts = {path for path, found in classes.items() if issubclass(found, kind)}
    chosen = {
        name for name in tensors
        if any(".".join(name.split(".")[:n]) in parts for n in range(name.count(".") + 1))
    }  # fmt: skip
    if not parts:
        known = dict.fromkeys(found.__name__ for found in classes.values())
        raise ValueError(
            f"the model has no submodule of class `{kind.__name__}`; the nearest are "
            f"{near(kind.__name__, known)}"
        )
    if not chosen:
        raise ValueError(f"submodules of class `{kind.__name__}` have no parameters here")
    return chosen


def matching(patterns: tuple[Any, ...], paths: list[str]) -> set[str]:
    """Return the paths of the submodules that patterns mean."""
    return {path for path in paths if any(matches(p, path) for p in patterns)}


def matches(pattern: Any, path: str) -> bool:
    """Return True if a pattern means this very submodule, not one that it lies in."""
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(path) is not None
    if pattern == path:
        return True
    whole = pattern.split(".")
    if "**" not in whole and len(whole) != path.count(".") + 1:
        return False
    try:
        select({path: 0}, pattern)
    except ValueError:
        return False
    return bool(path)


RULES = ("trainable", "buffer", "frozen")


def check_rule(what: str, rule: Any) -> None:
    """Raise if this is nothing that variables can be told to be."""
    if rule not in RULES:
        raise ValueError(f"the rule of `{what}` must be one of {RULES}, got {rule!r}")


def with_their_parameters(chosen: set[str], parameters: Tensors, stats: Tensors) -> set[str]:
    """Return statistics that were chosen, or all of whose module's parameters were."""
    siblings: dict[str, list[str]] = {}
    for name in parameters:
        siblings.setdefault(name.rpartition(".")[0], []).append(name)
    beside = {name: siblings.get(name.rpartition(".")[0], []) for name in stats}
    return {n for n in stats if n in chosen or (beside[n] and chosen.issuperset(beside[n]))}


def parts_within(parameters: Tensors, chosen: Collection[str]) -> set[str]:
    """Return the largest parts (paths of modules) all of whose parameters are chosen."""
    inside: dict[str, bool] = {}
    for name in parameters:
        names = name.split(".")
        for n in range(len(names)):
            part = ".".join(names[:n])
            inside[part] = inside.get(part, True) and name in chosen
    return outermost({part for part, yes in inside.items() if yes})


def outermost(parts: set[str]) -> set[str]:
    """Return the paths of modules that lie in no other of these."""
    return {part for part in parts if parts.isdisjoint(_above(part))}


def _above(part: str) -> list[str]:
    names = part.split(".") if part else []
    return [".".join(names[:n]) for n in range(len(names))]
