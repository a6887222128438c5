"""That the graph of a loop is walked at its first turns only."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

from leafax import _engine  # type: ignore[attr-defined]
from leafax._trace import local


def assert_walked_at_first_only(turn: Callable[[], None]) -> None:
    """Fail if the fifth turn of a loop, or the sixth, walks the graph."""
    # As if no test before had turned a tensor's shape.
    with mock.patch.object(local, "turned", False):
        for _ in range(4):
            turn()
        with mock.patch.object(_engine.GraphTask, "_walk", side_effect=AssertionError("walked")):
            turn()
            turn()
