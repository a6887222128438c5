"""Signatures of the ops' bodies, which are worked out when somebody asks for them.

Python takes 20 us for each, and the table has 600: a tenth of what importing leafax takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any


class Signature(inspect.Signature):
    """The signature of a function, read from it at first use."""

    __slots__ = ("_read_from",)
    _read_from: Callable[..., Any]

    @classmethod
    def of(cls, fn: Callable[..., Any]) -> Signature:
        """Return the signature of a function, without a look at it."""
        made = cls.__new__(cls)
        made._read_from = fn
        return made

    def __getattr__(self, name: str) -> Any:
        if name == "_read_from":  # of one that was made of others' parameters
            raise AttributeError(name)
        found = inspect.signature(self._read_from)
        # It fills in the fields that were missing; threads that do so at once find the same.
        inspect.Signature.__init__(
            self, [*found.parameters.values()], return_annotation=found.return_annotation
        )
        return object.__getattribute__(self, name)


def parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, in the order of its signature."""
    if type(fn) is not FunctionType or fn.__dict__:  # it may stand for another
        return tuple(inspect.signature(fn).parameters)
    code = fn.__code__
    fixed = code.co_argcount
    named = fixed + code.co_kwonlyargcount
    names, packed = code.co_varnames, named + bool(code.co_flags & inspect.CO_VARARGS)
    last = packed + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return names[:fixed] + names[named:packed] + names[fixed:named] + names[packed:last]
