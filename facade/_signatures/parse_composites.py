"""Functions and methods composed of ops say what PyTorch's parser would of wrong arguments."""

from __future__ import annotations

from typing import Any

from .check_arguments import is_known, parsed
from .overloads_data import OVERLOADS

# What is called so often that another call on the way would be felt, and asks little.
_BARE = frozenset(
    "detach numel dim "
    # These have forms of their own.
    "broadcast_tensors cartesian_prod".split()
)
# What is called often too: it says what the parser would once it has failed.
_WHEN_WRONG = frozenset("where fill_ normal_ bernoulli_ size stride".split())


def _stands_alone(f: Any) -> bool:
    """Whether a function is none that follows from the op table, which has all this already."""
    return (
        type(f) is type(_stands_alone)
        and not hasattr(f, "__signature__")
        and not hasattr(f, "__wrapped__")
    )


def functions(namespace: dict[str, Any], names: list[str]) -> None:
    """Let the functions of those names in a namespace say what PyTorch's parser would."""
    for name in names:
        f: Any = namespace.get(name)
        if name not in _BARE and _stands_alone(f) and (is_known(name) or name in OVERLOADS):
            namespace[name] = parsed(f, name, asks=is_known(name) and name not in _WHEN_WRONG)


def methods(cls: type) -> None:
    """The same for the methods of a class and of those that it is made of."""
    for name in [name for part in cls.__mro__[:-1] for name in vars(part)]:
        f = getattr(cls, name)
        known = name if is_known(name) else name.rstrip("_")
        if name[0] != "_" and name not in _BARE and _stands_alone(f) and is_known(known):
            setattr(cls, name, parsed(f, known, method=True, asks=name not in _WHEN_WRONG))
