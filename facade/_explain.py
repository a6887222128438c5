"""`leafax.explain()`: which programs ran, what cut them, and whether they were compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ._history import Run, history


class Report:
    """The last runs, oldest first; prints as a table. Iterate over it for the records."""

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
        """How many of the runs had to compile."""
        return sum(run.how == "compiled" for run in self.runs)

    def __str__(self) -> str:
        if not self.runs:
            return "nothing has run yet"
        lines = ["ops  how        ms        in  out saved donated  cut by"]
        for run in self.runs:
            file, line = run.where
            lines.append(
                f"{run.nodes:<4} {run.how:<10} {run.seconds * 1e3:<9.2f} {run.inputs:<3} "
                f"{run.outputs:<3} {run.saved:<5} {run.donated:<8} {run.reason} at "
                f"{Path(file).name}:{line}"
            )
        return "\n".join(lines)

    __repr__ = __str__


def explain(last: int | None = None, *, clear: bool = False) -> Report:
    """What ran and why, with the user's line of each cut.

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
