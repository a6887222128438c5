"""Calls that look for overrides: public functions are given another body once there is a need.

A function object stays what it is, wherever it was imported to; the code it had before becomes
another function, which the new body calls.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import Any

from leafax.functional.execution.tracebacks import answer_errors, guarded

from .._core.overrides import state as torch_function
from .._core.overrides.state import ENABLED, PLAIN, flat, overrides, takes_overrides
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from .overridable import Overridable, functions, methods

_IN_PLACE = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
# Functions that take `inplace` though the signature of their op says nothing of it.
_INPLACE = frozenset(
    "celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 selu silu threshold".split()
)
# Packages whose code calls public functions as PyTorch's does, so that their calls are seen.
_SEEN = tuple(
    f"leafax.{name}"
    for name in (
        "nn.modules nn.init nn.utils nn.parallel optim distributions utils hub fx "
        "_core.overrides overrides _tensor.tensor"
    ).split()
)


class Overridden:
    """The look at the arguments before a public function.

    Attributes:
      inner: the function as it was.
    """

    __slots__ = ("inner", "name", "public", "python", "unparsed", "_signature")

    def __init__(self, of: Overridable, inner: FunctionType) -> None:
        self.public, self.python, self.name = of.public, of.python, of.name
        self.inner, self.unparsed = inner, of.unparsed
        self._signature: inspect.Signature | None = None

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call what overrides the function, or the function."""
        if not kwargs and PLAIN.issuperset(map(type, args)) and not overrides.modes:
            return self.inner(*args)  # most calls
        if takes_overrides() and (
            overrides.modes
            or overrides.off == ENABLED
            and torch_function.finds_override((*args, *kwargs.values()) if kwargs else args)
        ):
            if overrides.redone or not _is_hidden(sys._getframe(2)):
                overrides.redone = False
                return self._ask(args, kwargs)
        return self.inner(*args, **kwargs)

    def _ask(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given: Any = kwargs or None
        relevant = list(flat((*args, *kwargs.values())))
        if self.python:
            try:
                args, given = self._spell(args, kwargs)
            except TypeError as error:
                if not torch_function.finds_override(relevant):  # it says so itself
                    return self.inner(*args, **kwargs)
                raise TypeError(f"{self.inner.__name__}() {error}") from None
        if self.unparsed:
            found: Sequence[Any] = args[:1]
        else:
            found = torch_function.overloaded(relevant, Tensor if self.python else None)
        made = torch_function.ask(self.public, found, args, given)
        if made is not NotImplemented:
            return made
        if self.name.endswith("__") and not self.name.endswith("_et__"):
            return NotImplemented  # Python asks the other operand
        raise TypeError(_nobody(self, found))

    def _spell(self, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Return arguments as PyTorch's functions in Python pass them on: defaults by name.

        Raises:
          TypeError: the function does not take them.
        """
        if self._signature is None:
            told = inspect.signature(self.inner)
            if self.name.rpartition(".")[2] in _INPLACE:
                told = told.replace(parameters=[*told.parameters.values(), _IN_PLACE])
            self._signature = told
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        first: list[Any] = []
        named: dict[str, Any] = {}
        by_name = self.name.startswith("torch.nn.init.")
        for p in self._signature.parameters.values():
            x = bound.arguments[p.name]
            if p.kind is p.VAR_POSITIONAL:
                first += x
            elif p.kind is p.VAR_KEYWORD:
                named |= x
            elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY and not by_name:
                first.append(x)
            else:
                named[p.name] = x
        if self.name.endswith(".einsum") and isinstance(first[-1], list | tuple):
            first[1:] = first[-1]  # the older form, which PyTorch turns into the newer one
        return tuple(first), named


def _nobody(of: Overridden, found: Sequence[Any]) -> str:
    if of.python:
        text = (
            f"no implementation found for '{of.name}' on types that implement __torch_function__: "
            f"{[type(x) for x in found]}"
        )
        return f"{text} nor in mode {overrides.modes[-1]}" if overrides.modes else text
    lines = [f"Multiple dispatch failed for '{of.name}'; all __torch_function__ handlers returned "
             "NotImplemented:\n\n"]  # fmt: skip
    if overrides.modes:
        lines.append(f"  - mode object {overrides.modes[-1]!r}\n")
    for x in found:
        lines.append(f"  - tensor subclass {type(x)!r}\n")
    lines.append("\nFor more information, try re-running with TORCH_LOGS=not_implemented")
    return "".join(lines)


@cache
def _example(free: tuple[str, ...]) -> CodeType:
    """Return the code of a function that passes its arguments to a constant.

    Args:
      free: the variables that its closure has, as that of the function whose code it replaces.
    """
    scope: dict[str, Any] = {}
    unused = "".join(f"\n  {name}" for name in free)
    head = f"def made({', '.join(free)}):\n def fn(*args, **kwargs):"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a string is called
        exec(f"{head}\n  return 'enter'(args, kwargs){unused}\n return fn", scope)
    code: CodeType = scope["made"](*free).__code__
    assert code.co_freevars == free
    return guarded(code.replace(co_filename=__file__))


def _entering(of: Overridable) -> tuple[CodeType, FunctionType]:
    """Return the code that looks first, and the function as it was."""
    old = of.function
    inner = FunctionType(
        old.__code__, old.__globals__, old.__name__, old.__defaults__, old.__closure__
    )
    inner.__kwdefaults__ = old.__kwdefaults__
    inner.__dict__.update(old.__dict__)
    inner.__doc__, inner.__module__ = old.__doc__, old.__module__
    inner.__annotations__ = old.__annotations__
    inner.__qualname__ = old.__qualname__
    enter = Overridden(of, inner).enter
    code = _example(old.__code__.co_freevars)
    code = code.replace(
        co_consts=tuple([enter if x == "enter" else x for x in code.co_consts]),
        co_name=old.__name__,
    )  # fmt: skip
    return code, inner


def _activate() -> None:
    """Give all functions that can be overridden the body that looks first."""
    done: set[FunctionType] = set()
    for of in (*functions(), *methods()):
        if of.function not in done:
            done.add(of.function)
            code, inner = _entering(of)
            of.function.__code__ = code
            of.function.__dict__["__wrapped__"] = inner
            _by_code.setdefault(inner.__code__, []).append(of.function)


def _find_first_override(error: Exception, frame: FrameType) -> tuple[Any] | None:
    """Answer the error of the first call that was given an object with `__torch_function__`.

    No tensor need be among its arguments, so that nothing but its failure tells of it.
    """
    if _is_hidden(frame.f_back):
        return None
    code, local = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    first = [local[n] for n in names[: code.co_argcount] if n in local]
    named = {n: local[n] for n in names[code.co_argcount : count] if n in local}
    if code.co_flags & inspect.CO_VARARGS:
        first += local.get(names[count], ())
        count += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named |= local.get(names[count], {})
    if not torch_function.meets_first_override((*first, *named.values())):
        return None
    for function in _by_code.get(code, ()):
        cells, names = function.__wrapped__.__closure__ or (), code.co_freevars
        if all(c.cell_contents is local.get(n) for n, c in zip(names, cells, strict=False)):
            return (function(*first, **named),)
    overrides.redone = False
    return None


def _is_hidden(frame: FrameType | None) -> bool:
    """Tell whether calls from a frame are the library's own affair."""
    name = "" if frame is None else frame.f_globals.get("__name__") or ""
    return name[:7] == "leafax." and not name.startswith(_SEEN)


_by_code: dict[CodeType, list[Any]] = {}  # functions that look, by the code they had
torch_function.install(_activate, Tensor, Parameter)
answer_errors(_find_first_override)
