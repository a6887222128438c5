"""Where functions that were made by others are found by name, so that they can be pickled.

Pickle writes a function down as its module and name. Most of PyTorch's functions are made here by
a function that takes an op, so what they know of themselves is where that one stands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FunctionType


def name_places(modules: Iterable[str]) -> None:
    """Let the public functions of these modules that cannot be found say where they are.

    Args:
      modules: their names within the package, "" for itself.
    """
    for path in modules:
        module = sys.modules[f"leafax.{path}" if path else "leafax"]
        for name, fn in vars(module).items():
            if not isinstance(fn, FunctionType) or fn.__name__ != name or is_found(fn):
                continue
            if getattr(sys.modules.get(fn.__module__), name, None) is not fn:
                fn.__module__ = module.__name__
            fn.__qualname__ = name


def is_found(fn: FunctionType) -> bool:
    """Whether a function is where it says."""
    found: object = sys.modules.get(fn.__module__)
    for part in fn.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is fn
