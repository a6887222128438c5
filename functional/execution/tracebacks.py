"""Tracebacks that end at the user's line.

A mistake in a user's line raises a dozen calls further in. JAX hides such frames by a wrapper
around each public function, which rewrites the traceback of what passes. Here a wrapper would cost
as much as a tenth of what recording an op costs, and warnings would name another line. So public
functions get a `try` around their body without one: CPython keeps handlers in a table beside the
code, where they cost nothing until something is raised.

`LEAFAX_TRACEBACK=full` in the environment shows all frames.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from .code_guards import Handler, make_handler, with_handler

_PACKAGES = ("leafax", "leafax.functional", "leafax.adapters", "jax")
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
# By id, since to hash code takes as long as to change it: the code, and what became of it.
_guarded: dict[int, tuple[types.CodeType, types.CodeType]] = {}


def end_at_callers(name: str) -> None:
    """Hide leafax's frames in errors that leave the public functions and classes of some modules.

    Args:
      name: of a module that was imported; those below it take part if they are public.
    """
    if not _works():
        return
    seen: set[Any] = set()  # what is public stands in many modules, or among many classes' bases
    for other, module in list(sys.modules.items()):
        below = other[len(name) :]
        if other.startswith(name) and below[:1] in ("", ".") and "._" not in below:
            if not other.startswith("leafax.functional."):  # its ops, which users do not call
                _guard_public(module, seen)


def guarded(code: types.CodeType) -> types.CodeType:
    """Return code that hides leafax's frames in errors that leave it."""
    return _guard(code) if _works() else code


def _guard_public(module: types.ModuleType, seen: set[Any]) -> None:
    for name, found in list(vars(module).items()):
        if name[0] != "_" and isinstance(found, (types.FunctionType, type)) and found not in seen:
            for fn in _functions(found, seen):
                fn.__code__ = _guard(fn.__code__)


def shown(error: BaseException) -> types.TracebackType | None:
    """Return the frames of an error's traceback that are the user's, or all on request."""
    entries = []
    tb = error.__traceback__
    if _all_shown():
        return tb
    own, hidden = _folders(), False
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        # Of Python's own library what leafax called goes with it.
        hidden = name.startswith(own) or hidden and _is_pythons(name)
        if not hidden:
            entries.append(tb)
        tb = tb.tb_next
    kept = None
    for entry in reversed(entries):
        kept = types.TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


@functools.lru_cache(4096)
def is_library_file(filename: str) -> bool:
    """Return True if a file is leafax's or JAX's."""
    return filename.startswith(_folders())


def _is_pythons(filename: str) -> bool:
    return filename.startswith(_LIBRARY) and "site-packages" not in filename


def _folders() -> tuple[str, ...]:
    packages = (sys.modules.get(name) for name in _PACKAGES)
    return tuple([p.__path__[0] + os.sep for p in packages if p is not None])


def _all_shown() -> bool:
    return os.environ.get("LEAFAX_TRACEBACK") == "full"


class _Answer(threading.local):
    """A value that is returned in the place of an error, for a moment."""

    found: Any = None


_answer_of = _Answer()
_answers: list[Callable[[Exception, types.FrameType], tuple[Any] | None]] = []


def answer_errors(find: Callable[[Exception, types.FrameType], tuple[Any] | None]) -> None:
    """Have some errors of public functions answered, instead of raised.

    Args:
      find: gets an error and the frame of the function that it leaves; it returns what the function
        is to return, in a tuple, or None for the error to be raised.
    """
    _answers.append(find)


def _answer() -> Any:
    found, _answer_of.found = _answer_of.found, None
    return found[0]


def _hide() -> bool:
    """Leave the user's frames in the traceback of the error that is handled, and in its causes.

    Return True if there is an answer in its place.
    """
    error: BaseException | None = sys.exception()
    if not isinstance(error, Exception):
        return False
    for find in _answers:
        _answer_of.found = find(error, sys._getframe(1))
        if _answer_of.found is not None:
            return True
    if not _all_shown():
        _shorten(error)
    return False


def _shorten(error: BaseException | None) -> None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _raised_here(error) and error.__cause__ is None:
            # What leafax caught on the way tells a user nothing; what the user caught does.
            users = error.__context__
            while users is not None and shown(users) is None and id(users) not in seen:
                seen.add(id(users))
                users = users.__context__
            error.__context__, error.__suppress_context__ = users, users is None
        error.__traceback__ = shown(error)
        error = error.__cause__ or error.__context__


def _raised_here(error: BaseException) -> bool:
    """Return True if the innermost frame of an error is leafax's or JAX's."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb is not None and is_library_file(tb.tb_frame.f_code.co_filename)


def _functions(found: Any, seen: set[Any]) -> list[types.FunctionType]:
    """Return leafax's functions that run when `found` is called, or used if it is a class.

    Args:
      seen: what was found before, to which all of this call is added.
    """
    functions: list[types.FunctionType] = []
    stack = [found]
    while stack:
        x = stack.pop()
        if x in seen:
            continue
        seen.add(x)
        if isinstance(x, types.FunctionType):
            if is_library_file(x.__code__.co_filename):
                functions.append(x)
        elif x.__module__.startswith("leafax"):
            stack += [base for base in x.__mro__ if base not in seen]
            for value in vars(x).values():
                stack += _of_attribute(value)
    return functions


def _of_attribute(value: Any) -> tuple[types.FunctionType, ...]:
    kind = type(value)
    if kind is types.FunctionType:
        return (value,)
    if issubclass(kind, (staticmethod, classmethod)):
        found: tuple[Any, ...] = (value.__func__,)
    elif issubclass(kind, property):
        found = value.fget, value.fset, value.fdel
    else:
        return ()
    return tuple([fn for fn in found if isinstance(fn, types.FunctionType)])


def _guard(code: types.CodeType) -> types.CodeType:
    """Wrap the code, and the functions that it makes, in `try`.

    The handler is `except: if hide(): return answer()`, and else `raise`.
    """
    found = _guarded.get(id(code))
    if found is not None:
        return found[1]
    made = code
    if not code.co_flags & _SUSPENDS:
        made = with_handler(code, _handler, (_hide, _answer), _guard)
    _guarded[id(code)] = code, made
    _guarded[id(made)] = made, made
    return made


def _probe(number: int) -> int:
    return 1 // number


def _works() -> bool:
    """Return True if handlers can be added to this interpreter's code; try it on a function."""
    global _handler
    if _handler is None:
        try:
            _handler = make_handler()
            probe = types.FunctionType(_guard(_probe.__code__), {})
            _tried = probe(1)
            try:
                probe(0)
            except ZeroDivisionError:
                return _tried == 1
        except Exception:
            pass
        _handler = Handler(b"", (), (), -1)
    return _handler.stack >= 0


_handler: Any = None
