"""The `vmap`s that run in a thread, the innermost last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._core.trie import local
from .._core.vmap_protocol import VmapStack
from .._storage.enter import enter
from ._level import Level


class LevelStack(threading.local, VmapStack):
    """Hold a thread's running levels; subclasses answer what the layers below ask of them.

    Attributes:
      levels: the running ones, the innermost last.
    """

    def __init__(self) -> None:
        self.levels: list[Level] = []

    @contextmanager
    def entered(self, level: Level) -> Iterator[None]:
        """Run the block, which calls the mapped function, within one more level."""
        self.levels.append(level)
        local.vmap = self
        try:
            yield
        finally:
            self.levels.pop()
            self._show()

    @contextmanager
    def suspended(self) -> Iterator[Level]:
        """Record as if outside of the innermost level, on batches, but without a cut."""
        level = self.levels.pop()
        before, local.cuts.aside = local.cuts.aside, True
        self._show()
        try:
            yield level
        finally:
            self.levels.append(level)
            local.vmap, local.cuts.aside = self, before

    def _show(self) -> None:
        """Show the stack to the layers below where it has a level."""
        local.vmap = self if self.levels else None

    def innermost(self, t: Any) -> Level | None:
        """Return the innermost level that `t` differs in from example to example."""
        for level in reversed(self.levels):
            if level.region.intact() and level.is_batched(t):
                return level
        return None

    def adopt(self, like: Any, made: Any) -> None:
        """Count a new tensor as one that differs between examples where `like` does."""
        for level in self.levels:
            if level.region.intact() and level.is_batched(like):
                level.add(enter(made, local.trace))
