"""Code of users: the names that a function reads, and which files and classes are no library's."""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

from leafax.functional.execution.tracebacks import is_library_file

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
#: Libraries whose objects hold no state that a step's Python reads.
CLOSED = frozenset({"jax", "jaxlib", "numpy", "builtins", "_thread", "threading", "weakref", "re"})


def is_filled(cell: Any) -> bool:
    """Tell whether a variable of a closure has a value yet."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def contents(cells: Iterable[Any]) -> list[Any]:
    """Return the values of a closure's variables."""
    return [cell.cell_contents for cell in cells]


@functools.cache
def names_in(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List all names in a code and in the functions that it makes, and those that are globals."""
    names = dict.fromkeys(code.co_names)
    read = {i.argval: None for i in dis.get_instructions(code) if i.opname in _READS}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            inner, inner_read = names_in(const)
            names.update(dict.fromkeys(inner))
            read.update(dict.fromkeys(inner_read))
    return tuple(names), tuple(read)


def _library_folders() -> Iterator[str]:
    paths = sysconfig.get_paths()
    for name in ("purelib", "platlib", "stdlib", "platstdlib"):
        if name in paths:
            yield paths[name]


_LIBRARIES = tuple(dict.fromkeys(_library_folders()))


@functools.cache
def is_users_file(name: str) -> bool:
    """Tell whether a source file is of no installed library."""
    if name.startswith(_LIBRARIES) or name.startswith("<frozen") or name == "<builtin>":
        return False
    return not is_library_file(name)


@functools.cache
def is_users_class(cls: Any) -> bool:
    """Tell whether a class is of no installed library."""
    name = cls.__module__
    if name.partition(".")[0] in ("leafax", *CLOSED):
        return False
    module = sys.modules.get(name)
    return module is not None and is_users_file(getattr(module, "__file__", None) or "<builtin>")


def slots_of(x: Any) -> list[tuple[str, Any]]:
    """Return the fields of an object that its class has slots for, those that are set."""
    found = []
    for cls in type(x).__mro__:
        names = vars(cls).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            slot = vars(cls).get(name)
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    found.append((name, slot.__get__(x)))
                except AttributeError:
                    continue
    return found
