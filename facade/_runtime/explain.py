"""`leafax.explain()`: which programs ran, what cut them, and what was compiled."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .._core.run_log import Compilation, Run, compilations, history
from .compilations import tell

LONGEST = 8  # runs of a loop's turn that the table takes together


class Report:
    """The last runs, oldest first; prints as a table, in which turns of a loop are told once.

    Iterate over it for the records.

    Attributes:
      runs: the records.
      compilations: XLA's own: of programs, of ops alone, of other arrays, and those of JAX code in
        which leafax has no part.
    """

    def __init__(self, runs: list[Run], made: list[Compilation]) -> None:
        self.runs, self.compilations = runs, made

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
        return "\n".join([*lines, *self._compiled()])

    def _compiled(self) -> list[str]:
        """Sum up in a line what XLA compiled."""
        kinds = Counter(c.kind for c in self.compilations)
        if not kinds:
            return []
        seconds = sum(c.seconds for c in self.compilations)
        told = ", ".join(f"{kinds[kind]} {words}" for kind, words in _KINDS if kinds[kind])
        return [f"XLA compiled {kinds.total()} times in {seconds:.2f} s: {told}"]

    __repr__ = __str__


_KINDS = (
    ("program", "of programs"), ("program again", "of programs anew"), ("op alone", "of ops alone"),
    ("other", "of other arrays"), ("yours", "of JAX code of yours"),
)  # fmt: skip


def _row(run: Run) -> str:
    file, line = run.where
    return (
        f"{run.nodes:<4} {run.how:<10} {run.seconds * 1e3:<9.2f} {run.inputs:<3} "
        f"{run.outputs:<3} {run.saved:<5} {run.donated:<8} {run.reason} at "
        f"{Path(file).name}:{line}{': ' if run.why else ''}{run.why}"
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
    if history:
        tell()
    runs, made = list(history), list(compilations)
    if clear:
        history.clear()
        compilations.clear()
    return Report(runs, made) if last is None else Report(runs[-last:], [])
