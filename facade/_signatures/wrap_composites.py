"""Functions and methods composed of ops stand behind PyTorch's parser as those of the table do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from .check_arguments import find_error, precheck
from .parser import ALIASES
from .table import known_signatures, required_signatures

# What is called so often that another call on the way would be felt, and asks little.
_BARE = frozenset(
    "detach numel dim "
    # These have forms of their own.
    "broadcast_tensors cartesian_prod".split()
)
# What is called often too: its arguments are looked at once it has failed.
_WHEN_WRONG = frozenset("where fill_ normal_ bernoulli_ size stride".split())


def parsed(
    fn: Callable[..., Any], name: str = "", method: bool = False, first: bool = True,
    shown: str = "",
) -> Callable[..., Any]:  # fmt: skip
    """Return a function composed of ops that refuses arguments in PyTorch's words.

    Args:
      name: of the function, where it has another.
      method: `fn` is the method of that function, or the one that writes in place.
      first: look at the arguments before, for what `fn` would take in silence.
      shown: its name in messages.
    """
    name = name or fn.__name__
    shown = shown or (fn.__name__ if method else name.replace(".", "_"))

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if first and (kwargs or len(args) != method):  # of a tensor alone nothing is to be said
                precheck(name, args, kwargs, shown, method)
            return fn(*args, **kwargs)
        except Exception as error:
            wrong = find_error(name, args, kwargs, shown, method)
            if wrong is not None:
                raise wrong from None
            named = own_names(fn, kwargs) if kwargs and isinstance(error, TypeError) else []
            if not named or named == list(kwargs):
                raise
        return fn(*args, **dict(zip(named, kwargs.values(), strict=True)))

    return call


def own_names(fn: Callable[..., Any], names: Iterable[str]) -> list[str]:
    """Return a function's own names for those of a call, which may be NumPy's."""
    # A signature may be another function's.
    code = inspect.unwrap(fn).__code__  # type: ignore[attr-defined]
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = []
    for name in names:
        if name not in own:
            name = next((p for p, others in ALIASES.items() if name in others), name)
            if name == "input" and name not in own and own:
                name = own[0]
        found.append(name)
    return found


def wrap_functions(namespace: dict[str, Any], names: list[str]) -> None:
    """Put the functions of those names in a namespace behind the parser."""
    for name in names:
        f: Any = namespace.get(name)
        if name.startswith("_foreach"):  # these bind their arguments themselves
            continue
        if name not in _BARE and _stands_alone(f) and required_signatures(name):
            namespace[name] = parsed(f, name, first=name not in _WHEN_WRONG)


def wrap_methods(cls: type) -> None:
    """Put the methods of a class and of those that it is made of behind the parser."""
    for name in [name for part in cls.__mro__[:-1] for name in vars(part)]:
        f = getattr(cls, name)
        known = name if known_signatures(name) else name.rstrip("_")
        if name[0] != "_" and name not in _BARE and _stands_alone(f) and known_signatures(known):
            setattr(cls, name, parsed(f, known, method=True, first=name not in _WHEN_WRONG))


def _stands_alone(f: Any) -> bool:
    """Return whether a function does not follow from the op table, which has all this already."""
    return (
        type(f) is type(_stands_alone)
        and not hasattr(f, "__signature__")
        and not hasattr(f, "__wrapped__")
    )
