"""Random imperative programs under torch and leafax: what differs is shrunk and printed.

    python tests/fuzz.py --seed 700000 --programs 1000 --steps 14 --seconds 150

runs the programs of seeds 700000, 700001, ... A seed and the number of steps say which program it
is, on every machine and in every run, until `helpers/fuzz_programs.py` is changed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from helpers import fuzz_programs, sameness

import leafax

# How leafax runs a program: anew, from memory, looking at each value at once.
WAYS: tuple[dict[str, Any], ...] = ({}, {}, {"eager": True})
NAMES = ("first run", "from memory", "values read at once")


class Drawn(NamedTuple):
    """A program: its statements, and whether the flags of all tensors are compared after each."""

    lines: tuple[str, ...]
    watch: bool = False


class Difference(NamedTuple):
    """Where leafax is not torch: at which of the `WAYS`, and both sides in words."""

    way: int
    text: str


def draw(seed: int, most: int) -> Drawn:
    """The program of a seed, of 3 to `most` steps."""
    numbers = random.Random(seed)
    steps = []
    for _ in range(numbers.randint(3, most)):
        kind, i, j, k = (numbers.randrange(1000) for _ in range(4))
        steps.append((kind, i, j, k))
    return Drawn(tuple(fuzz_programs.write(steps)), numbers.random() < 0.3)


def ways_of(seed: int) -> Sequence[int]:
    """The ways for a seed: to compile whole programs takes longest, so one in four is met again."""
    return ((0, 1, 2), (0,), (0,), (2,))[seed % 4]


def difference(drawn: Drawn, ways: Sequence[int] = range(len(WAYS))) -> Difference | None:
    """The first difference between torch and leafax, None if there is none."""
    program = fuzz_programs.program(list(drawn.lines), drawn.watch)
    with warning_always():
        try:
            expected = sameness.run(program, torch)
        except RuntimeError:  # a tensor left a transform that PyTorch cannot show any more
            return None
        if "INTERNAL ASSERT" in repr(expected):  # a bug of PyTorch, by its own words
            return None
        for way in ways:
            try:
                ours = _as_named(sameness.run(program, leafax, **WAYS[way]), expected)
                with sameness.rounded_as(expected):
                    found = sameness.difference(ours, expected)
            except Exception as e:  # when a value was read at the end
                found = f"leafax raised {type(e).__name__}: {e}"
            if found is not None:
                return Difference(way, f"{NAMES[way]}: {found}")
    return None


_MODIFIED = re.compile(r"(modified by an inplace .* is output) \d+ of \w+(, is at version)")


def _as_named(ours: Any, theirs: Any) -> Any:
    """Our log with their name for the node whose result was written through a view.

    That is `AsStrided` or the node that wrote, and which depends on what is alive inside PyTorch;
    here it is the view's as long as the view is there.
    """
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return list(map(_as_named, ours, theirs))
    if isinstance(ours, str) and isinstance(theirs, str) and "AsStrided" in ours + theirs:
        alike = _MODIFIED.sub(r"\1\2", ours) == _MODIFIED.sub(r"\1\2", theirs)
        return theirs if alike else ours
    return ours


@contextmanager
def warning_always() -> Iterator[None]:
    """Warnings that come once in a process come each time, so that programs can be compared."""
    before = torch.is_warn_always_enabled()
    for lib in (torch, leafax):
        lib.set_warn_always(True)
    try:
        yield
    finally:
        for lib in (torch, leafax):
            lib.set_warn_always(before)


def shrink(drawn: Drawn, found: Difference, until: float) -> tuple[Drawn, Difference]:
    """The program with every line left out that it differs without, or as far as time goes."""
    ways = range(2) if found.way == 1 else [found.way]
    for line in reversed(drawn.lines):
        if time.monotonic() > until:
            break
        n = len(drawn.lines) - 1 - drawn.lines[::-1].index(line)
        smaller = Drawn(drawn.lines[:n] + drawn.lines[n + 1 :], drawn.watch)
        still = difference(smaller, ways)
        if still is not None and "NameError" not in still.text:  # of what the line made
            drawn, found = smaller, still
    if drawn.watch and (still := difference(Drawn(drawn.lines), ways)) is not None:
        drawn, found = Drawn(drawn.lines), still
    return drawn, found


def main() -> int:
    """Run what the command line says; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--programs", type=int, default=1000, help="how many seeds")
    parser.add_argument("--steps", type=int, default=14, help="the longest program")
    parser.add_argument("--seconds", type=float, default=150, help="stop then")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.monotonic()
    ran = bad = 0
    for seed in range(asked.seed, asked.seed + asked.programs):
        if time.monotonic() - start > asked.seconds:
            break
        drawn = draw(seed, asked.steps)
        ran += 1
        if (found := difference(drawn, ways_of(seed))) is None:
            continue
        bad += 1
        # A little longer than asked, so that the last difference is shown small too.
        drawn, found = shrink(drawn, found, start + asked.seconds + 20)
        body = "\n".join(f"    {line}" for line in drawn.lines)
        print(f"--- seed {seed}, watch={drawn.watch}\n{body}\n  {found.text}", flush=True)
    last = asked.seed + ran - 1
    print(
        f"seeds {asked.seed} to {last}, up to {asked.steps} steps: {ran} programs, "
        f"{bad} differences, {time.monotonic() - start:.0f} s"
    )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
