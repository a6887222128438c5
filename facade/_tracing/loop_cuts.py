"""Cutting programs that get too long: a loop without observations runs in equal pieces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leafax.functional.program.program import Node

from .._core.trie import Trace, local

BUDGET = 12_000  # computing nodes a program may have before it is cut
BUDGET_BYTES = 1 << 30  # bytes that a trace may hold on to through its inputs
TURN = 256  # nodes in the programs that a loop without observations is cut into
_TOO_BIG = "the bytes a program may hold are used up"
_TOO_LONG = "the program is long"


def over_budget(trace: Trace) -> bool:
    """Return whether the program has grown as far as it may."""
    state = trace.state
    if trace.inside is not None:  # it is never cut
        return False
    if local.budget and state.nodes >= local.budget:
        return True
    if trace.nbytes > BUDGET_BYTES:
        # Parameters are held by their model anyway; what counts is held by the trace alone.
        trace.nbytes = sum(
            a.nbytes for a in trace.arrays if hasattr(a, "nbytes") and sys.getrefcount(a) <= 3
        )
    return state.nodes >= BUDGET or trace.nbytes > BUDGET_BYTES


@contextmanager
def uncut() -> Iterator[None]:
    """Keep the program of the block uncut, however long; cut before the block, if need be."""
    if not local.cuts.uncut and over_budget(local.trace):
        cut_for_budget(local.trace)
    before, local.cuts.uncut = local.cuts.uncut, True
    try:
        yield
    finally:
        local.cuts.uncut = before


def cut_for_budget(trace: Trace) -> None:
    """Cut a program that got too long, where a loop's next turns will be cut too.

    What repeats is looked for in what was recorded. If the last ops are turns of a loop, the
    programs that follow hold a whole number of turns: they all have the same structure. Python
    numbers that change from turn to turn are inputs of those programs.
    """
    if local.cuts.uncut:
        return
    end, before = trace.state, local.cuts.turn_end
    if local.budget and before in (None, end):  # the loop goes on as it did
        budget, local.cuts.turn_end = local.budget, end
    else:
        nodes = [s for s in end.path() if isinstance(s.entry, Node)]
        kinds = [[(v.shape, v.dtype, v.weak) for v in s.operands] for s in nodes]
        period = _period([(s.call, kind) for s, kind in zip(nodes, kinds, strict=True)])
        last = nodes[len(nodes) - period :]
        turn = sum(s.nodes - s.parent.nodes for s in last if s.parent)
        budget = max(1, TURN // turn) * turn if turn else 0
        local.cuts.turn_end = None
    too_big = trace.nbytes > BUDGET_BYTES
    local.runner.cut(_TOO_BIG if too_big else _TOO_LONG)
    local.budget = budget  # until something else cuts: then the loop is over


def _period(signs: list[Any]) -> int:
    """Find the shortest period of the list's end, if it repeats at least twice; else 0.

    The failure function of Knuth, Morris and Pratt on the reversed list.
    """
    back = signs[::-1][:BUDGET]
    fail = [0] * len(back)
    k = 0
    best = 0
    for i in range(1, len(back)):
        while k and back[i] != back[k]:
            k = fail[k - 1]
        if back[i] == back[k]:
            k += 1
        fail[i] = k
        period = i + 1 - k
        if k >= 2 * period and i + 1 >= len(back) // 2:
            best = period
    return best
