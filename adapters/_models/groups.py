"""Parameter groups by path: what an optimizer takes, from patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .select import Tensors, choose

Options = Mapping[str, Any]


def groups(
    parameters: Tensors,
    options: Mapping[Any, Options],
    classes: Callable[[], dict[str, type]],
    rest: Options,
) -> list[dict[str, Any]]:
    """Make groups of named parameters; see `Model.groups`."""
    taken: set[str] = set()
    found = []
    for what, chosen_options in options.items():
        several = what if isinstance(what, tuple) else (what,)
        chosen = choose(parameters, several, classes)
        if chosen <= taken:
            raise ValueError(
                f"every parameter that `{text_of(what)}` selects is in an earlier group already: "
                f"put the narrower pattern first"
            )
        found.append(_group(parameters, chosen - taken, chosen_options))
        taken |= chosen
    if parameters.keys() - taken:
        found.append(_group(parameters, parameters.keys() - taken, rest))
    return found


def layerwise(
    parameters: Tensors, levels: dict[str, int], lr: float, decay: float, options: Options
) -> list[dict[str, Any]]:
    """Make groups by level, the last first, with rates that fall toward the input."""
    last = max(levels.values())
    found = []
    for level in sorted(set(levels.values()), reverse=True):
        names = {name for name, at in levels.items() if at == level}
        found.append(_group(parameters, names, {**options, "lr": lr * decay ** (last - level)}))
    return found


def _group(parameters: Tensors, names: Any, options: Options) -> dict[str, Any]:
    return {**options, "params": [(n, t) for n, t in parameters.items() if n in names]}


def text_of(what: Any) -> str:
    """Return a pattern as messages name it."""
    if isinstance(what, tuple):
        return ", ".join(map(text_of, what))
    return str(getattr(what, "pattern", getattr(what, "__name__", what)))
