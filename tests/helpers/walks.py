"""That the graph of a loop is walked at its first turns only."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

from leafax._autograd.engine import task  # type: ignore[attr-defined]
from leafax._core.trie import local
from leafax._storage import data_writes  # type: ignore[attr-defined]


def assert_walked_at_first_only(turn: Callable[[], None]) -> None:
    """Fail if the fifth turn of a loop, or the sixth, walks the graph."""
    # As if no test before had turned a tensor's shape, or left one that was written to unseen.
    unseen = mock.patch.dict(data_writes._written, clear=True)
    with mock.patch.object(local, "turned", False), unseen:
        for _ in range(4):
            turn()
        with mock.patch.object(task.GraphTask, "_walk", side_effect=AssertionError("walked")):
            turn()
            turn()
