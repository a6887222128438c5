"""`leafax.explain()`: which programs ran, what cut them, and whether they were compiled."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from .._core.run_log import Run, history

LONGEST = 8  # runs of a loop's turn that the table takes together


class Report:
    """The last runs, oldest first; prints as a table, in which turns of a loop are told once.

    Iterate over it for the records.
    """

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, i: int) -> Run:
        return self.runs[i]

    @property
    def compiles(self) -> int:
        """Count the runs that had to compile."""
        return sum(run.how == "compiled" for run in self.runs)

    def __str__(self) -> str:
        if not self.runs:
            return "nothing has run yet"
        lines, i = ["ops  how        ms        in  out saved donated  cut by"], 0
        kinds = [run._replace(seconds=0.0) for run in self.runs]
        while i < len(kinds):
            period, turns = _repeated(kinds, i)
            lines += map(_row, self.runs[i : i + period])
            if turns > 1:
                again = self.runs[i + period : i + period * turns]
                told = "the same" if period == 1 else f"these {period}"
                took = statistics.median(run.seconds for run in again) * 1e3
                lines.append(
                    f"     {told}, {turns - 1} times more, {took:.2f} ms each in the median"
                )
            i += period * turns
        return "\n".join(lines)

    __repr__ = __str__


def _row(run: Run) -> str:
    file, line = run.where
    return (
        f"{run.nodes:<4} {run.how:<10} {run.seconds * 1e3:<9.2f} {run.inputs:<3} "
        f"{run.outputs:<3} {run.saved:<5} {run.donated:<8} {run.reason} at "
        f"{Path(file).name}:{line}"
    )


def _repeated(kinds: list[Run], start: int) -> tuple[int, int]:
    """Return the period of the runs that begin at `start`, and how often it repeats.

    A loop runs one program a turn, or a few; fewer than three turns are told run by run.
    """
    for period in range(1, LONGEST + 1):
        turn = kinds[start : start + period]
        turns = 1
        while kinds[start + turns * period : start + (turns + 1) * period] == turn:
            turns += 1
        if turns >= 3:
            return period, turns
    return 1, 1


def explain(last: int | None = None, *, clear: bool = False) -> Report:
    """Report the program runs and their reasons, with the user's line of each cut.

    Args:
      last: how many runs to report; None for all that are remembered (1000).
      clear: forget them afterwards.

    >>> import leafax
    >>> _ = leafax.explain(clear=True)
    >>> (leafax.ones(2) + 1).tolist()
    [2.0, 2.0]
    >>> leafax.explain()[0].reason
    'tolist()'
    """
    runs = list(history)
    if clear:
        history.clear()
    return Report(runs if last is None else runs[-last:])
