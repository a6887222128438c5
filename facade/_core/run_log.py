"""The log of program runs that `leafax.explain()` reports."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

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
      how: "compiled", "cached" (compiled before), "op by op", or "in pieces": what repeats in it,
        or was met before, is compiled, and the program as a whole is not.
      seconds: to compile and dispatch; the device may still be computing.
      inputs, outputs, saved: how many arrays went in, came out, and were kept for backward.
      donated: how many input buffers were reused for outputs.
      why: how a new program differs from the one before it at this line, why one that is not
        compiled ran as it did, or why JAX compiled anew what was compiled before. `explain()`
        puts the difference in.
      programs: weak references to the plan of a new program and to that of the one before it.
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
    why: str = ""
    programs: tuple[Any, Any] | None = None


class Compilation(NamedTuple):
    """One compilation by XLA.

    Attributes:
      kind: "program"; "program again", one that was compiled before; "piece", a part of one that
        repeats; "op alone"; "other", an array that leafax made; or "yours", in which leafax has no
        part.
      name: of the op or JAX function.
      where: the user's file and line.
      seconds: that XLA took.
      why: a program had to be compiled again.
      read: XLA did not compile it: an earlier process had, see `leafax.cache`.
    """

    kind: str
    name: str
    where: tuple[str, int]
    seconds: float
    why: str
    read: bool = False


class AtOnce:
    """Work on small data on the host, which runs no program.

    Attributes:
      ops: how many were computed, or written in place.
    """

    ops = 0


at_once = AtOnce()
history: deque[Run] = deque(maxlen=1000)
plans: deque[tuple[Run, Plan]] = deque(maxlen=50)
compilations: deque[Compilation] = deque(maxlen=1000)
profiles: list[Any] = []  # those that are being recorded: one, or none
#: Why calls of compiled functions run plainly, and where they were made.
fallbacks: deque[tuple[str, tuple[str, int]]] = deque(maxlen=50)
