"""Passes over graphs: how often a loop walks them, whatever other tests left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from leafax._autograd.engine import task  # type: ignore[attr-defined]
from leafax._core.trie import local
from leafax._storage import data_writes  # type: ignore[attr-defined]


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Act as if no test before had turned a tensor's shape, or left one written to unseen."""
    unseen = mock.patch.dict(data_writes._written, clear=True)
    with mock.patch.object(local, "turned", False), unseen:
        yield


def assert_walked_at_first_only(turn: Callable[[], None]) -> None:
    """Fail if the fifth turn of a loop, or the sixth, walks the graph."""
    with nothing_left_behind():
        for _ in range(4):
            turn()
        with mock.patch.object(task.GraphTask, "_walk", side_effect=AssertionError("walked")):
            turn()
            turn()
