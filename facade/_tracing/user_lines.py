"""The user's line that records an op, and the blocks and modules that it runs in."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Sequence
from typing import Any

from leafax.functional.execution.tracebacks import is_library_file
from leafax.functional.program.line import Line

_CALL, _MODULES = "_call_impl", "leafax.nn.modules.module"  # the frame of a module's call
_DEPTH = 3  # containers between a module and one that it calls


class _Blocks(threading.local):
    """Names of the `record_function` blocks that this thread is in, from the outside in."""

    def __init__(self) -> None:
        self.names: list[str] = []


blocks = _Blocks()


def user_line() -> tuple[str, int]:
    """Return file and line of the innermost frame outside leafax (and jax)."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            return (name, frame.f_lineno)
        frame = frame.f_back
    return ("?", 0)


def recorded_line() -> Line:
    """Return the user's line with the names of the blocks and modules around it."""
    where: tuple[str, int] | None = None
    modules: list[Any] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if where is None and is_users(code.co_filename):
            where = code.co_filename, frame.f_lineno
        elif code.co_name == _CALL and frame.f_globals.get("__name__") == _MODULES:
            # Of this frame alone: a look at its locals holds what a call holds in any case.
            modules.append(frame.f_locals["self"])
        frame = frame.f_back
    scopes = tuple(blocks.names)
    if modules:
        scopes += (_path(modules[::-1]),)
    return Line(*(where or ("?", 0)), scopes)


@functools.cache
def is_users(name: str) -> bool:
    """Return whether the user wrote this file, as far as one can tell."""
    return not is_library_file(name) and not name.startswith("<frozen")


def _path(modules: Sequence[Any]) -> str:
    """Return the dotted path of the last of these modules, each of which calls the next."""
    names = [type(modules[0]).__name__]
    for parent, child in zip(modules, modules[1:], strict=False):
        if child is not parent:
            names.append(_name(parent, child, _DEPTH) or type(child).__name__)
    return ".".join(names)


def _name(parent: Any, child: Any, depth: int) -> str | None:
    """Return the path of a module within another; None if it is not there."""
    below = parent._modules
    for name, module in below.items():
        if module is child:
            return str(name)
    for name, module in below.items() if depth > 1 else ():
        if module is not None and module._modules:
            found = _name(module, child, depth - 1)
            if found is not None:
                return f"{name}.{found}"
    return None
