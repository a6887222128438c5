"""Parts that names of PyTorch's infrastructure are made of where leafax has nothing behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NoReturn


def leave(fn: Any = None, *args: Any, **options: Any) -> Any:
    """Return a function or class as it is; with options alone, a decorator that does so.

    >>> leave(len) is len, leave(recursive=False)(len) is len
    (True, True)
    """
    return fn if callable(fn) else _as_it_is


def _as_it_is(fn: Any) -> Any:
    return fn


def do_nothing(*args: Any, **options: Any) -> None:
    """Take any arguments and do nothing."""


class Block(contextlib.ContextDecorator):
    """A block, also as a decorator, that changes nothing."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass


def refusal(name: str, instead: str) -> str:
    """Return the message for a name of PyTorch's that leafax cannot answer."""
    return f"leafax has no torch.{name}: {instead}"


def refuse(name: str, instead: str) -> Callable[..., NoReturn]:
    """Make a function that can be imported, and that raises when it is called.

    Args:
      name: the function's name within `torch`, dotted.
      instead: why there is none, or what to use in its place.

    >>> refuse("jit.trace", "a step is compiled as it is")()
    Traceback (most recent call last):
    NotImplementedError: leafax has no torch.jit.trace: a step is compiled as it is
    """

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(refusal(name, instead))

    refused.__name__ = name.rpartition(".")[2]
    refused.__qualname__ = refused.__name__
    refused.__doc__ = f"Raise NotImplementedError: {instead}."
    return refused


def refuse_class(name: str, instead: str, *bases: type, module: str = "") -> Any:
    """Make a class to import, to subclass and to ask `isinstance` with; it has no instances.

    Args:
      name: its name within `torch`, dotted.
      instead: why there is none, or what to use in its place.
      bases: its bases.
      module: the module that it says it is in; by default the name's.
    """
    path, _, short = name.rpartition(".")

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N807
        raise NotImplementedError(refusal(name, instead))

    made = {
        "__new__": __new__, "__module__": module or f"leafax.{path}".rstrip("."),
        "__doc__": f"Stand for a class that has no instances: {instead}.",
    }  # fmt: skip
    return type(short, bases, made)
