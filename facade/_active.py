"""How many transforms of `leafax.func` are being recorded in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Active(threading.local):
    depth = 0


active = _Active()


@contextmanager
def transform() -> Iterator[None]:
    """While a transformed function is called: some things are forbidden then."""
    active.depth += 1
    try:
        yield
    finally:
        active.depth -= 1


@contextmanager
def allowed() -> Iterator[None]:
    """Within the block all is allowed again: `autograd.functional` may use transforms."""
    before, active.depth = active.depth, 0
    try:
        yield
    finally:
        active.depth = before
