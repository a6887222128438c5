"""Checkpoints that are being written: the end of the process waits for them."""

from __future__ import annotations

import threading
from typing import Any

_WRITING: set[Any] = set()


def begin(writer: Any) -> None:
    """Note that a writer of orbax, a manager or a checkpointer, is at work."""
    _WRITING.add(writer)


def finish(writer: Any) -> None:
    """Wait until a writer has finished, and raise what it failed for."""
    _WRITING.discard(writer)
    writer.wait_until_finished()


def _finish_all() -> None:
    for writer in list(_WRITING):
        writer.wait_until_finished()


# `atexit` would be too late: orbax needs new threads, and there are none by then.
threading._register_atexit(_finish_all)  # type: ignore[attr-defined]
