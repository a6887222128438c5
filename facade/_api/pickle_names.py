"""Module names of public functions and methods, by which pickle finds them.

Pickle writes a function down as its module and name. Most of PyTorch's functions are made here by
a function that takes an op, so what they know of themselves is where that one stands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from inspect import CO_VARARGS
from types import FunctionType

# Of what is written here as a function with arguments of its own, those that are Python's methods
# in PyTorch; its parser says nothing of the class.
_PYTHONS = frozenset(
    "dim_order eig istft lstsq lu module_load norm reinforce resize resize_as solve".split()
)


def name_places(modules: Iterable[str]) -> None:
    """Name a module for public functions that their own module does not hold.

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


def name_methods(cls: type) -> None:
    """Name public methods as the class's own, whichever base they were written in.

    What Python says of a call that they cannot take begins with that name.
    """
    for part in cls.__mro__[:-1]:
        for name, fn in vars(part).items():
            own = isinstance(fn, FunctionType) and fn.__name__ == name and name[0] != "_"
            bare = own and fn.__qualname__ == name and not fn.__code__.co_flags & CO_VARARGS
            if own and (not bare or name in _PYTHONS):
                fn.__module__, fn.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"


def is_found(fn: FunctionType) -> bool:
    """Tell whether a function is where it says."""
    found: object = sys.modules.get(fn.__module__)
    for part in fn.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is fn
