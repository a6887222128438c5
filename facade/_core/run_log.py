"""The log of program runs that `leafax.explain()` reports."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from leafax.functional.execution.plan import Plan

# Reasons to cut a program. Those of `ON_HOST` read values on the host.
LOOP = "a loop over integers"
STEP = "optimizer.step()"
LOADER = "a sample of a dataset"
ON_HOST = frozenset({"item()", "bool()", "tolist()", "numpy()", "print", LOOP, LOADER})


class Run(NamedTuple):
    """One line of `leafax.explain()`.

    Attributes:
      reason: what cut the program.
      where: the user's file and line there.
      nodes: how many ops the program computes.
      how: "compiled", "cached" (compiled before) or "op by op".
      seconds: to compile and dispatch; the device may still be computing.
      inputs, outputs, saved: how many arrays went in, came out, and were kept for backward.
      donated: how many input buffers were reused for outputs.
    """

    reason: str
    where: tuple[str, int]
    nodes: int
    how: str
    seconds: float
    inputs: int
    outputs: int
    saved: int
    donated: int


history: deque[Run] = deque(maxlen=1000)
plans: deque[tuple[Run, Plan]] = deque(maxlen=50)
