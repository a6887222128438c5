"""Timing contenders against each other on a machine that is not quiet.

A turn is a few steps of one contender in a row, as a training loop makes them: the first of them
meet caches that the one before has filled and are not timed, and of the others the median counts.
Contenders take turns, each round in another order. What is reported are ratios of two turns of
one round: whatever slows the machine for longer than a turn slows both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

UNTIMED = 2  # steps that begin a turn


def take_turns(
    runs: Mapping[str, Callable[[int], object]], rounds: int, steps: int, first: int = 0
) -> dict[str, list[float]]:
    """Seconds a step: one number a turn, by contender.

    Args:
      runs: call one with the number of a step, and it makes that step and waits for it.
      rounds: turns that each of them has.
      steps: timed steps of a turn.
      first: the number of the first step; all contenders make the same steps.
    """
    names = list(runs)
    times: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        turn = i % len(names) if names else 0
        ordered = names[turn:] + names[:turn]
        for name in ordered if i % 2 else reversed(ordered):
            taken = []
            for j in range(UNTIMED + steps):
                start = time.perf_counter()
                runs[name](first + i * (UNTIMED + steps) + j)
                taken.append(time.perf_counter() - start)
            times[name].append(statistics.median(taken[UNTIMED:]))
    return times


def ratios(times: list[float], others: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of the ratios of two contenders' turns."""
    found = [a / b for a, b in zip(times, others, strict=False)]
    if len(found) < 2:
        return (found * 3)[0:3] if found else (float("nan"),) * 3  # type: ignore[return-value]
    low, middle, high = statistics.quantiles(found, n=4)
    return low, middle, high
