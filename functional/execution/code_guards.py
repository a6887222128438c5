"""Handlers of errors that are added to compiled functions: a `try` around a body, without a call.

CPython keeps handlers in a table beside the code: they cost nothing until something is raised.
"""

from __future__ import annotations

import dis
import functools
import inspect
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_MARKS = "hide", "answer"
_RESUME = dis.opmap["RESUME"]


class Entry(NamedTuple):
    """A line of a table of handlers; all but `depth` in code units.

    Attributes:
      depth: how much of the stack stays, times two, and 1 if the place of the error is pushed.
    """

    start: int
    length: int
    target: int
    depth: int


class Handler(NamedTuple):
    """The code of a handler and its table, counted from where it begins.

    Attributes:
      places: where the two functions are loaded; the number of a constant has two bytes there.
    """

    code: bytes
    places: tuple[int, ...]
    entries: tuple[Entry, ...]
    stack: int


def make_handler() -> Handler:
    """Return the code that this interpreter makes of the handler, in a function of constants."""
    scope: dict[str, Any] = {}
    constants = "".join(f" x = {n}.5\n" for n in range(256))
    handler = "  if 'hide'():\n   return 'answer'()\n  raise"
    source = f"def body():\n{constants} try:\n  call()\n except:\n{handler}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a string is called
        exec(source, scope)
    code = scope["body"].__code__
    first, *others = _entries(code.co_exceptiontable)
    start = first.target
    places = {i.argval: i.offset - 2 * start for i in dis.get_instructions(code)}
    entries = [e._replace(start=e.start - start, target=e.target - start) for e in others]
    loads = tuple([places[mark] for mark in _MARKS])
    added = code.co_code[2 * start :]
    assert all(added[at - 2] == dis.opmap["EXTENDED_ARG"] for at in loads)
    return Handler(added, loads, tuple(entries), code.co_stacksize)


def _is_function(x: Any) -> bool:
    return (
        isinstance(x, types.CodeType)
        and x.co_name[0] != "<"
        and bool(x.co_flags & inspect.CO_NEWLOCALS)
    )


def with_handler(
    code: types.CodeType,
    handler: Handler,
    called: tuple[Callable[[], Any], Callable[[], Any]],
    made: Callable[[types.CodeType], types.CodeType],
) -> types.CodeType:
    """Return code whose body is in a `try` with a handler.

    Args:
      called: the functions that the handler calls, in its order.
      made: what becomes of the code of the functions that this one makes.
    """
    body, constants = code.co_code, code.co_consts
    begin = 1 if body[0] == _RESUME else body[::2].index(_RESUME) + 1
    end = len(body) // 2
    if code.co_exceptiontable:
        filled = _filled(list(_entries(code.co_exceptiontable)), begin, end)
        table = b"".join([_written(*entry) for entry in filled]) + _table_at(handler, end)
    else:
        table = _table_of_gap(handler, begin, end)
    if types.CodeType in map(type, constants):
        constants = tuple([made(x) if _is_function(x) else x for x in constants])
    return code.replace(
        co_code=body + _calling(handler, len(constants)),
        co_consts=(*constants, *called),
        co_exceptiontable=table,
        co_linetable=code.co_linetable + _no_lines(len(handler.code) // 2),
        co_stacksize=max(code.co_stacksize, handler.stack),
    )


def _filled(entries: list[Entry], begin: int, end: int) -> list[Entry]:
    """Return a table with entries for all that has none, which lead to the end of the code."""
    gaps, at = [], begin
    for e in [*entries, Entry(end, 0, 0, 0)]:
        if e.start > at:
            gaps.append(Entry(at, e.start - at, end, 0))
        at = max(at, e.start + e.length)
    return sorted(entries + gaps)


@functools.cache
def _calling(handler: Handler, first: int) -> bytes:
    """Return a handler's code that calls two constants, of which the number of one is given."""
    code = bytearray(handler.code)
    for at, constant in zip(handler.places, (first, first + 1), strict=True):
        code[at - 1], code[at + 1] = constant >> 8, constant & 255
    return bytes(code)


@functools.cache
def _table_at(handler: Handler, end: int) -> bytes:
    """Return a handler's table for its code behind so many units of another."""
    written = [_written(s + end, length, t + end, depth) for s, length, t, depth in handler.entries]
    return b"".join(written)


@functools.cache
def _table_of_gap(handler: Handler, begin: int, end: int) -> bytes:
    """Return the table of code that had none, as most code: it is one gap."""
    return _written(begin, end - begin, end, 0) + _table_at(handler, end)


def _entries(table: bytes) -> Iterator[Entry]:
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
        yield Entry(*numbers[k : k + 4])


@functools.cache
def _no_lines(units: int) -> bytes:
    """Make a table of lines for code that belongs to none: eight units a byte."""
    return bytes(0x80 | 15 << 3 | min(8, units - k) - 1 for k in range(0, units, 8))


def _written(*entry: int) -> bytes:
    out = bytearray()
    for number in entry:
        if number < 64:
            out.append(number)
            continue
        digits = [number & 63]
        while number := number >> 6:
            digits.append(64 | number & 63)
        out += bytes(reversed(digits))
    out[0] |= 128  # where an entry begins
    return bytes(out)
