"""Warnings that PyTorch gives once in a process, unless it was told to give them always."""

from __future__ import annotations

import sys
import warnings
from typing import Any

_given: set[str] = set()
_always = False
_asked = 0  # how often a warning was due, given or not


def warn_once(text: str, key: str | None = None) -> None:
    """Warn the user with these words, the first time only.

    Args:
      key: what is once, where the words tell of the case.
    """
    global _asked
    _asked += 1
    if (key or text) in _given and not _always:
        return
    _given.add(key or text)
    warn(text)


def warn(text: str) -> None:
    """Warn of the user's call, however deep what warns lies."""
    global _asked
    _asked += 1
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def warnings_due() -> int:
    """Return how often a warning was due so far, so that a call that warns is known as one."""
    return _asked


def _is_ours(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("leafax", "contextlib")


def set_warn_always(b: bool) -> None:
    """Show warnings each time that else come once in a process, or stop it.

    >>> import leafax
    >>> leafax.set_warn_always(True)
    >>> leafax.is_warn_always_enabled()
    True
    >>> leafax.set_warn_always(False)
    """
    global _always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _always = b


def is_warn_always_enabled() -> bool:
    """Return whether `set_warn_always(True)` was called last."""
    return _always


def drops_imaginary(source: Any, target: Any, numel: int) -> None:
    """Warn once if complex numbers are about to become real ones (bools are asked for more).

    Args:
      numel: how many; PyTorch looks when it copies.
    """
    if numel and source.kind == "c" and target.kind not in "cb":
        warn_once("Casting complex values to real discards the imaginary part")
