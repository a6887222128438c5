"""The place in a Flax model where a call failed: the module's path and the user's line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flax

from leafax.functional.execution.tracebacks import is_library_file

_FLAX = os.path.dirname(str(flax.__file__)) + os.sep


@contextmanager
def placed_errors(path_of: Callable[[Any], str | None]) -> Iterator[None]:
    """Note on an error of the block in which submodule it was raised, and at which line.

    Args:
      path_of: the path of an object if it is a submodule, `""` for the model itself, else None.
    """
    try:
        yield
    except Exception as error:
        note = _place(error, path_of)
        if note is not None and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def _place(error: Exception, path_of: Callable[[Any], str | None]) -> str | None:
    """Find the innermost submodule among the frames, and the innermost line of the user's there."""
    module = line = None
    tb = error.__traceback__
    while tb is not None:
        frame = tb.tb_frame
        code = frame.f_code
        if code.co_argcount:
            owner = frame.f_locals.get(code.co_varnames[0])
            path = path_of(owner)
            if path is not None:
                module = f"`{path}` ({type(owner).__name__})" if path else type(owner).__name__
        if not code.co_filename.startswith((_FLAX, "<")) and not is_library_file(code.co_filename):
            line = f"{code.co_filename}:{tb.tb_lineno}"
        tb = tb.tb_next
    if module is None:
        return None
    return f"raised in {module} of the model" + (f", at {line}" if line else "")
