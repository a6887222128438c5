"""That the graph of a loop is walked at its first turns only."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

from leafax import _engine, _silent  # type: ignore[attr-defined]
from leafax._trace import local


def assert_walked_at_first_only(turn: Callable[[], None]) -> None:
    """Fail if the fifth turn of a loop, or the sixth, walks the graph."""
    # As if no test before had turned a tensor's shape, or left one that was written to unseen.
    unseen = mock.patch.dict(_silent._written, clear=True)
    with mock.patch.object(local, "turned", False), unseen:
        for _ in range(4):
            turn()
        with mock.patch.object(_engine.GraphTask, "_walk", side_effect=AssertionError("walked")):
            turn()
            turn()
