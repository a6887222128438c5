"""`torch.backends.nnpack`: leafax computes without it; its switch is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._switches import exchange

_enabled = True


def is_available() -> bool:
    """Return False: XLA has kernels and threads of its own."""
    return False


def set_flags(_enabled: bool) -> tuple[Any, ...]:
    """Set the switch, and return what it was."""
    return exchange(globals(), _enabled=_enabled)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Set the switch within the block."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
