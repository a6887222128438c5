"""Tracebacks that end at the user's line.

A mistake in a user's line raises a dozen calls further in. JAX hides such frames by a wrapper
around each public function, which rewrites the traceback of what passes. Here a wrapper would cost
as much as a tenth of what recording an op costs, and warnings would name another line. So public
functions get a `try` around their body without one: CPython keeps handlers in a table beside the
code, where they cost nothing until something is raised.

`LEAFAX_TRACEBACK=full` in the environment shows all frames.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_PACKAGES = ("leafax", "leafax.functional", "leafax.adapters", "jax")
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_MARK = "hide"
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_guarded: dict[types.CodeType, types.CodeType] = {}


def end_at_callers(name: str) -> None:
    """Hide leafax's frames in errors that leave the public functions and classes of some modules.

    Args:
      name: of a module that was imported; those below it take part if they are public.
    """
    if not _works():
        return
    seen: set[type] = set()  # a class stands in many modules, and among the bases of many others
    for other, module in list(sys.modules.items()):
        below = other[len(name) :]
        if other.startswith(name) and below[:1] in ("", ".") and "._" not in below:
            if not other.startswith("leafax.functional."):  # its ops, which users do not call
                _guard_public(module, seen)


def guarded(code: types.CodeType) -> types.CodeType:
    """Return code that hides leafax's frames in errors that leave it."""
    return _guard(code) if _works() else code


def _guard_public(module: types.ModuleType, seen: set[type]) -> None:
    for name, found in list(vars(module).items()):
        if not name.startswith("_"):
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


def _hide() -> None:
    """Leave the user's frames in the traceback of the error that is handled, and in its causes."""
    error: BaseException | None = sys.exception()
    if not isinstance(error, Exception) or _all_shown():
        return
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


def _functions(found: Any, seen: set[type]) -> Iterator[types.FunctionType]:
    """Yield leafax's functions that run when `found` is called, or used if it is a class.

    Args:
      seen: classes whose functions were yielded before, to which those of this call are added.
    """
    if isinstance(found, types.FunctionType):
        if is_library_file(found.__code__.co_filename):
            yield found
    elif isinstance(found, type) and found.__module__.startswith("leafax"):
        for part in found.__mro__:
            if part.__module__.startswith("leafax") and part not in seen:
                seen.add(part)
                for value in list(vars(part).values()):
                    for fn in _of_attribute(value):
                        if fn is not None:
                            yield from _functions(fn, seen)


def _of_attribute(value: Any) -> Iterable[Any]:
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    return (value,) if isinstance(value, types.FunctionType) else ()


class _Entry(NamedTuple):
    """A line of a table of handlers; all but `depth` in code units.

    Attributes:
      depth: how much of the stack stays, times two, and 1 if the place of the error is pushed.
    """

    start: int
    length: int
    target: int
    depth: int


class _Handler(NamedTuple):
    """The code of `except: hide(); raise`, and its table, counted from where it begins."""

    before: bytes
    after: bytes
    entries: tuple[_Entry, ...]
    stack: int


def _example() -> _Handler:
    """Return the code that this interpreter makes of the handler `except: hide(); raise`."""
    scope: dict[str, Any] = {}
    source = f"def body():\n try:\n  call()\n except:\n  {_MARK!r}()\n  raise"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a string is called
        exec(source, scope)
    code = scope["body"].__code__
    first, *others = _entries(code.co_exceptiontable)
    start = first.target
    mark = next(i.offset for i in dis.get_instructions(code) if i.argval == _MARK)
    # The number of the constant takes one unit more, for its higher bits.
    grown = [_Entry(e.start - start, e.length + 1, e.target - start + 1, e.depth) for e in others]
    assert all(2 * (e.start + start) <= mark < 2 * (e.start + start + e.length - 1) for e in grown)
    return _Handler(
        code.co_code[2 * start : mark], code.co_code[mark + 2 :], tuple(grown), code.co_stacksize
    )


def _guard(code: types.CodeType) -> types.CodeType:
    """Wrap the code, and the functions that it makes, in `try: ... except: hide(); raise`."""
    found = _guarded.get(code)
    if found is not None:
        return found
    made = code
    if not code.co_flags & _SUSPENDS:
        made = _with_handler(code, _handler)
    _guarded[code] = _guarded[made] = made
    return made


def _is_function(x: Any) -> bool:
    return (
        isinstance(x, types.CodeType)
        and x.co_name[0] != "<"
        and bool(x.co_flags & inspect.CO_NEWLOCALS)
    )


def _with_handler(code: types.CodeType, handler: _Handler) -> types.CodeType:
    body = code.co_code
    resume = dis.opmap["RESUME"]
    begin = next(i for i in range(0, len(body), 2) if body[i] == resume) // 2 + 1
    end, number = len(body) // 2, len(code.co_consts)
    load = dis.opmap["LOAD_CONST"], dis.opmap["EXTENDED_ARG"]
    added = handler.before + bytes((load[1], number >> 8, load[0], number & 255)) + handler.after
    entries = list(_entries(code.co_exceptiontable))
    gaps, at = [], begin
    for e in [*entries, _Entry(end, 0, 0, 0)]:
        if e.start > at:
            gaps.append(_Entry(at, e.start - at, end, 0))
        at = max(at, e.start + e.length)
    entries = sorted(entries + gaps)
    entries += [e._replace(start=e.start + end, target=e.target + end) for e in handler.entries]
    return code.replace(
        co_code=body + added,
        co_consts=(*[_guard(x) if _is_function(x) else x for x in code.co_consts], _hide),
        co_exceptiontable=b"".join(map(_written, entries)),
        co_linetable=code.co_linetable + _no_lines(len(added) // 2),
        co_stacksize=max(code.co_stacksize, handler.stack),
    )


def _entries(table: bytes) -> Iterator[_Entry]:
    """Read a table: numbers of six bits a byte, of which 64 says that more follow."""
    numbers: list[int] = []
    data = iter(table)
    for byte in data:
        number = byte & 63
        while byte & 64:
            byte = next(data)
            number = number << 6 | byte & 63
        numbers.append(number)
    for k in range(0, len(numbers), 4):
        yield _Entry(*numbers[k : k + 4])


@functools.cache
def _no_lines(units: int) -> bytes:
    """Make a table of lines for code that belongs to none: eight units a byte."""
    return bytes(0x80 | 15 << 3 | min(8, units - k) - 1 for k in range(0, units, 8))


def _written(entry: _Entry) -> bytes:
    out = bytearray()
    for number in entry:
        digits = [number & 63]
        while number := number >> 6:
            digits.append(64 | number & 63)
        out += bytes(reversed(digits))
    out[0] |= 128  # where an entry begins
    return bytes(out)


def _probe(number: int) -> int:
    return 1 // number


def _works() -> bool:
    """Return True if handlers can be added to this interpreter's code; try it on a function."""
    global _handler
    if _handler is None:
        try:
            _handler = _example()
            probe = types.FunctionType(_guard(_probe.__code__), {})
            _tried = probe(1)
            try:
                probe(0)
            except ZeroDivisionError:
                return _tried == 1
        except Exception:
            pass
        _handler = _Handler(b"", b"", (), -1)
    return _handler.stack >= 0


_handler: Any = None
