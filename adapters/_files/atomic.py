"""Files that are either the old ones or the new ones, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable


def write_atomically(path: str | os.PathLike[str], write: Callable[[str], None]) -> None:
    """Call `write` with a file beside `path`, and move it there once it is on the disk."""
    target = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(target))
    os.makedirs(folder, exist_ok=True)
    partial = os.path.join(folder, f".{os.path.basename(target)}.{os.getpid()}.partial")
    try:
        write(partial)
        _to_disk(partial)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
        raise
    _to_disk(folder)


def _to_disk(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder, where the system has no such thing
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
