"""Properties of modules: `backends.cudnn.allow_tf32 = False` sets more than a variable."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any


def give_properties(
    module: str, **properties: tuple[Callable[[], Any], Callable[[Any], None]]
) -> None:
    """Give a module variables that are read and set by functions.

    Args:
      module: its name, in `sys.modules`.
      properties: by name, what reads it and what sets it.
    """
    members = {name: _property(*functions) for name, functions in properties.items()}
    sys.modules[module].__class__ = type("Module", (types.ModuleType,), members)


def _property(read: Callable[[], Any], write: Callable[[Any], None]) -> property:
    return property(lambda module: read(), lambda module, value: write(value))
