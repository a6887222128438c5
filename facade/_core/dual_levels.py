"""Levels of forward mode: which are open in a thread, and the tangents that each of them holds.

While a level is open every op is recorded once more for its tangents, see `propagate.py`. Where a
level ends, so do its tangents.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

from .trie import Mode, local

BY_USERS: list[int] = []  # the levels that `autograd.forward_ad` opened


class Duals(dict[int, Any]):
    """Hold a tensor's tangents by level."""

    __slots__ = ("__weakref__",)


class _Open(threading.local):
    """Hold the thread's open levels, and for each the tangents that its end clears."""

    def __init__(self) -> None:
        self.levels: list[list[ref[Duals]]] = []
        self.enabled = True  # ops carry tangents on


opened = _Open()


def enter_level() -> int:
    """Open a level and return its number."""
    opened.levels.append([])
    number = len(opened.levels)
    levels = local.mode.dual
    if opened.enabled and not local.mode.inference:
        levels = (*levels, number)
    local.set_mode(_mode_with(levels))
    return number


def exit_level() -> None:
    """Close the last level and drop its tangents."""
    number = len(opened.levels)
    for holder in opened.levels.pop():
        duals = holder()
        if duals is not None:
            duals.pop(number, None)
    local.set_mode(_mode_with(tuple([n for n in local.mode.dual if n != number])))


def open_levels() -> tuple[int, ...]:
    """Return the levels that ops carry tangents of outside of inference mode."""
    return tuple(range(1, len(opened.levels) + 1)) if opened.enabled else ()


def levels_below(level: int) -> tuple[int, ...]:
    """Return the levels under this one that ops carry tangents of now."""
    return tuple([n for n in local.mode.dual if n < level])


@contextmanager
def recording_levels(levels: tuple[int, ...]) -> Iterator[None]:
    """Record the block with the tangents of these levels only."""
    before = local.mode
    local.set_mode(_mode_with(levels))
    try:
        yield
    finally:
        local.set_mode(before)


def enable_tangents(enabled: bool) -> None:
    """Carry tangents through ops from now on, or stop it."""
    opened.enabled = enabled
    local.set_mode(_mode_with(open_levels()))


@contextmanager
def tangents_enabled(mode: bool) -> Iterator[None]:
    """Carry tangents through the ops of the block, or stop it for the block."""
    before, now = opened.enabled, local.mode
    if before is not mode:
        enable_tangents(mode)
    try:
        yield
    finally:
        opened.enabled = before
        local.set_mode(now)


def _mode_with(levels: tuple[int, ...]) -> Mode:
    mode = local.mode
    return Mode.of(mode.enabled, mode.inference, mode.autocast, dual=levels)


def set_tangent(t: Any, level: int, tangent: Any) -> None:
    """Give `t` a tangent, which ends with the level."""
    if t._duals is None:
        t._duals = Duals()
    t._duals[level] = tangent
    opened.levels[level - 1].append(ref(t._duals))


def copy_tangents(source: Any, out: Any) -> Any:
    """Give `out`, the same values, the tangents of `source`; return `out`."""
    if source._duals:
        for level, tangent in source._duals.items():
            set_tangent(out, level, tangent)
    return out
