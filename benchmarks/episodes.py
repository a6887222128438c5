"""Loops whose length or structure changes: episodes, sampled text, masks, trees.

    python benchmarks/episodes.py            # all
    python benchmarks/episodes.py trees      # some

Each turn has another length, as an environment or a prompt decides. The slowest of the later turns
tells whether lengths are compiled; the mean has the garbage collector in it, which the median has
not.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [p for p in (str(HERE), str(HERE.parent / "examples")) if p not in sys.path]

from programs import leafax_programs  # noqa: E402

import leafax  # noqa: E402

TURNS = 24
WARM = 8
LOOPS = {
    "REINFORCE": ("recurrent_torch", "make_reinforce", 10, 40),
    "actor-critic": ("structures_torch", "make_actor_critic", 10, 40),
    "sampling": ("recurrent_torch", "make_sampling", 20, 60),
    "masks": ("structures_torch", "make_masks", 20, 60),
    "trees": ("structures_torch", "make_trees", 5, 20),
}


def _steps_of(name: str, length: int) -> int:
    """Return the steps of a turn: of a tree its nodes."""
    return {"masks": 1, "trees": 2 * length - 1}.get(name, length)


def _libraries(file: str) -> dict[str, Any]:
    found = {"leafax": leafax_programs(file)}
    if importlib.util.find_spec("torch"):
        found["torch"] = importlib.import_module(file)
    return found


def measure(name: str, turns: int = TURNS) -> list[str]:
    """Return the rows of one loop: microseconds a step of it, and the slowest turns."""
    file, make, least, most = LOOPS[name]
    lengths = np.random.default_rng(0).integers(least, most, turns)
    runs: dict[str, Callable[[int], Any]] = {
        who: getattr(programs, make)() for who, programs in _libraries(file).items()
    }
    times: dict[str, list[float]] = {who: [] for who in runs}
    for n in lengths:
        for who, run in runs.items():
            start = time.perf_counter()
            run(int(n))
            times[who].append(time.perf_counter() - start)
    rows = []
    steps = [_steps_of(name, int(n)) for n in lengths]
    each = {
        who: [t / n * 1e6 for t, n in zip(found, steps, strict=True)][WARM:]
        for who, found in times.items()
    }
    for who in runs:
        pairs = zip(each["leafax"], each[who], strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        slow = max(times[who][WARM:])
        rows.append(
            f"| {name} | {who} | {statistics.median(each[who]):.0f} | {ratio:.1f} | "
            f"{sum(times[who][WARM:]) / sum(steps[WARM:]) * 1e6:.0f} | {times[who][0]:.2f} | "
            f"{slow * 1e3:.0f} |"
        )
    return rows


HEAD = [
    "| loop | | us a step | leafax / it | mean | first turn, s | slowest turn after 8, ms |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def rows(names: Iterable[str] = LOOPS) -> list[str]:
    """List the rows of a table: microseconds a step of each loop, leafax and torch."""
    leafax.explain(clear=True)
    return [row for name in names for row in measure(name)]


def main() -> None:
    asked = sys.argv[1:]
    chosen = [n for n in LOOPS if not asked or any(n.lower().startswith(a) for a in asked)]
    print(*HEAD, *rows(chosen), sep="\n")


if __name__ == "__main__":
    main()
