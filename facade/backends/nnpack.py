"""`torch.backends.nnpack`: leafax computes without it; its switch is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_enabled = True


def is_available() -> bool:
    """Return False: XLA has kernels and threads of its own."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set the switch, and return what it was."""
    before = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (before,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Set the switch within the block."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
