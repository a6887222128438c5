"""The last programs of one family, which tell a loop's body from what varies each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from .thresholds import LONG_LOOP_STARTS, LOOP_RUNS, RECENT_PROGRAMS


class RecentRuns:
    """The last programs of one family, and how often each ran in a row."""

    def __init__(self) -> None:
        self._runs: tuple[tuple[ref[Any], int], ...] = ()  # set whole: threads share it

    def add(self, program: Any) -> None:
        last = self._runs
        before = _in_a_row(last, program)
        rest = last[:-1] if before else last
        self._runs = (*rest, (ref(program), before + 1))[-RECENT_PROGRAMS:]

    @property
    def programs(self) -> int:
        """The number of these programs, up to `RECENT_PROGRAMS`."""
        return len(self._runs)

    def repeats(self, program: Any) -> bool:
        """Return True if `program` ran last too: many times, where others were no loops."""
        return _in_a_row(self._runs, program) >= self.starts(program)

    def starts(self, program: Any) -> int:
        """Return how often a program must run in a row to be taken for a loop's body."""
        others = self._runs[:-1]
        hardly = len(others) == RECENT_PROGRAMS - 1 and not any(
            _was_loop(*other) for other in others
        )
        return LOOP_RUNS if hardly else LONG_LOOP_STARTS if program.is_long else 1


def _in_a_row(last: Sequence[tuple[ref[Any], int]], program: Any) -> int:
    return last[-1][1] if last and last[-1][0]() is program else 0


def _was_loop(held: ref[Any], times: int) -> bool:
    """Return True if a program that is still there was met again and again."""
    program = held()
    plan = None if program is None or program.plan is None else program.plan()
    return times > LOOP_RUNS or ran_often(plan)


def ran_often(plan: Any) -> bool:
    """Return True if a plan that is still there ran as often as the body of a loop does."""
    return plan is not None and plan.runs > LOOP_RUNS
