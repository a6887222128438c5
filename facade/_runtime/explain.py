"""`leafax.explain()`: which programs ran, what cut them, and what was compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from .._core.run_log import Compilation, Run, at_once, compilations, fallbacks, history
from .compilations import tell
from .program_differences import difference, file_line

LONGEST = 8  # runs of a loop's turn that the table takes together


class Report:
    """The last runs, oldest first; prints as a table, in which turns of a loop are told once.

    Iterate over it for the records.

    Attributes:
      runs: the records.
      compilations: XLA's own: of programs, of ops alone, of other arrays, and those of JAX code in
        which leafax has no part.
      at_once: how many ops on small data on the host NumPy computed, or wrote, without a program.
      fallbacks: why calls of compiled functions run plainly, with the user's line.
    """

    def __init__(
        self, runs: list[Run], made: Sequence[Compilation] = (), at_once: int = 0,
        fallbacks: Sequence[tuple[str, tuple[str, int]]] = (),
    ) -> None:  # fmt: skip
        self.runs, self.compilations, self.at_once = runs, made, at_once
        self.fallbacks = fallbacks

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, i: int) -> Run:
        return self.runs[i]

    @property
    def compiles(self) -> int:
        """Count the runs that had to compile, or to read what an earlier process compiled."""
        return sum(run.how == "compiled" for run in self.runs)

    def __str__(self) -> str:
        at_once = []
        if self.at_once:
            ops = "1 op" if self.at_once == 1 else f"{self.at_once} ops"
            at_once = [f"computed at once by NumPy, in no program: {ops} on small data on the host"]
        at_once += [f"{why} (at {file_line(where)})" for why, where in self.fallbacks]
        if not self.runs:
            return "\n".join(at_once) or "nothing has run yet"
        lines, i = ["ops  how        ms        in  out saved donated  cut by"], 0
        kinds = [*map(_kind, self.runs)]
        while i < len(kinds):
            period, turns = _repeated(kinds, i)
            lines += map(_row, self.runs[i : i + period])
            if turns > 1:
                again = self.runs[i + period : i + period * turns]
                same = [run.why for run in again] == [r.why for r in self.runs[i : i + period]] * (
                    turns - 1
                )
                told = ("the same" if same else "the like") if period == 1 else f"these {period}"
                took = float(np.median([run.seconds for run in again])) * 1e3
                lines.append(
                    f"     {told}, {turns - 1} times more, {took:.2f} ms each in the median"
                )
            i += period * turns
        return "\n".join([*lines, *self._compiled(), *at_once])

    def _compiled(self) -> list[str]:
        """Sum up in a line what XLA compiled, and in another what was read from a cache."""
        kinds = Counter(c.kind for c in self.compilations)
        if not kinds:
            return []
        seconds = sum(c.seconds for c in self.compilations)
        told = ", ".join(f"{kinds[kind]} {words}" for kind, words in _KINDS if kinds[kind])
        lines = [f"XLA compiled {kinds.total()} times in {seconds:.2f} s: {told}"]
        read = sum(c.read for c in self.compilations)
        if read:
            lines.insert(0, f"of what XLA compiled, {read} were read from the cache on disk")
        return lines

    __repr__ = __str__


_KINDS = (
    ("program", "of programs"), ("program again", "of programs anew"), ("piece", "of pieces"),
    ("op alone", "of ops alone"), ("other", "of other arrays"), ("yours", "of JAX code of yours"),
)  # fmt: skip


def _row(run: Run) -> str:
    return (
        f"{run.nodes:<4} {run.how:<10} {run.seconds * 1e3:<9.2f} {run.inputs:<3} "
        f"{run.outputs:<3} {run.saved:<5} {run.donated:<8} {run.reason} at "
        f"{file_line(run.where)}{': ' if run.why else ''}{run.why}"
    )


def _kind(run: Run) -> Run:
    """Return what is equal for runs that are told together: other numbers make no difference."""
    return run._replace(seconds=0.0, why=re.sub(r"\d+", "0", run.why), programs=None)


def _explained(run: Run) -> Run:
    """Return the run of a new program with how that differs from the one before it."""
    if run.programs is None:
        return run
    now, before = run.programs
    plan, other = now(), None if before is None else before()
    why = [run.why] if run.why else []
    if plan is not None and other is not None and plan is not other:
        why.insert(0, difference(other, plan))
    return run._replace(why="; ".join(why), programs=None)


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
    runs, made, ops = [*map(_explained, history)], list(compilations), at_once.ops
    plain = list(fallbacks)
    if clear:
        history.clear()
        fallbacks.clear()
        compilations.clear()
        at_once.ops = 0
    return Report(runs, made, ops, plain) if last is None else Report(runs[-last:])
