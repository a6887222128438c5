"""Hooks that were registered on a part of an nnx model: `model.conv.register_forward_hook(f)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flax import nnx

from .._inside.watch import Hook, Watchers


def with_parts(
    watchers: Watchers | None, module: Any, hooks: Mapping[int, tuple[Any, Hook]]
) -> Watchers:
    """Return the watchers of a call of `module`, with the hooks on the parts below it.

    Args:
      watchers: of the model itself.
      hooks: each with the module that it was registered on.
    """
    found = Watchers()
    if watchers is not None:
        found.watched, found.hooks = watchers.watched, dict(watchers.hooks)
    places: dict[int, str] = {id(module): ""}
    for path, part in nnx.iter_modules(module):
        places.setdefault(id(part), ".".join(map(str, path)))
    for n, (part, hook) in hooks.items():
        if id(part) in places:
            found.hooks[n] = hook._replace(pattern=_below(places[id(part)], hook.pattern))
    return found


def _below(path: str, pattern: Any) -> Any:
    if not path:
        return pattern
    if isinstance(pattern, re.Pattern):
        return re.compile(f"{re.escape(path)}\\.(?:{pattern.pattern})", pattern.flags)
    return f"{path}.{pattern}".rstrip(".").replace("/", ".")
