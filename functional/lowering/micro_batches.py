"""Micro-batches of one program, one after another: what one keeps for backward is freed.

Several forward passes with a backward pass each, before an optimizer's step, depend on each other
by the sum of their gradients alone. So XLA orders them as it likes: all forward passes first, and
the activations of all are in memory at once. Here what the next forward pass reads first waits for
the gradients of the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ..program.dtypes import is_differentiable
from ..program.program import Input, Node, Program
from .barrier import barrier
from .vjp import is_gradient

#: Bytes that a forward pass computes, and gradients, below which all may be in memory at once.
LEAST_BYTES = 16 << 20


class Turn(NamedTuple):
    """Values that a forward pass is the first to read, and waits with.

    Attributes:
      held: their numbers.
      awaited: numbers of the gradients that it waits for.
    """

    held: tuple[int, ...]
    awaited: tuple[int, ...]


def turns_of(program: Program, differentiated: Collection[int]) -> dict[int, Turn]:
    """Find where forward passes follow on backward passes.

    Args:
      differentiated: the entries whose gradient is in the program.

    Returns:
      By entry, what is held back once it was evaluated.
    """
    entries = program.entries
    passes = _passes(entries, differentiated)
    if len(passes) < 2:
        return {}
    firsts, values = program.first_values(), _Values(entries, program.outputs)
    found: dict[int, Turn] = {}
    start, back = passes[0]  # since the last one that waits
    for entry, next_back in passes[1:]:
        late = values.from_backward(back, next_back)
        awaited = tuple(
            n for n in range(firsts[back], firsts[entry])
            if n in late and values.last_read.get(n, 0) >= entry
            and is_differentiable(values.avals[n].dtype)
        )  # fmt: skip
        held = values.new_to(entry, next_back, differentiated) - late
        kept = sum(values.avals[n].nbytes for n in (*range(firsts[start], firsts[back]), *awaited))
        if not awaited or not held or kept < LEAST_BYTES:
            continue  # also where a checkpoint computes again what it had read before
        for n in sorted(held):
            place = max(entry - 1, values.source[n])
            before = found[place].held if place in found else ()
            found[place] = Turn((*before, n), awaited)
        start, back = entry, next_back
    return found


class _Values:
    """The values of a program: where they come from, and where they are read."""

    def __init__(self, entries: Sequence[Input | Node], outputs: Sequence[int]) -> None:
        self.entries = entries
        self.avals = [aval for entry in entries for aval in entry.avals]
        self.source = [e for e, entry in enumerate(entries) for _ in entry.avals]
        self.first_read: dict[int, int] = {}
        self.last_read: dict[int, int] = {}
        for e, entry in enumerate(entries):
            for n in _inputs(entry):
                self.first_read.setdefault(n, e)
                self.last_read[n] = e
        self.last_read |= dict.fromkeys(outputs, len(entries))

    def from_backward(self, start: int, stop: int) -> set[int]:
        """Return the values that depend on a gradient between two entries."""
        found: set[int] = set()
        for n, e in enumerate(self.source):
            entry = self.entries[e]
            if start <= e < stop and (is_gradient(entry) or not found.isdisjoint(_inputs(entry))):
                found.add(n)
        return found

    def new_to(self, start: int, stop: int, differentiated: Collection[int]) -> set[int]:
        """Return what a forward pass is the first to read, and does not compute itself."""
        forward = {e for e in range(start, stop) if e in differentiated}
        return {
            n
            for e in forward
            for n in _inputs(self.entries[e])
            if self.first_read[n] >= start and self.source[n] not in forward
        }


def hold_back(env: list[Any], turn: Turn | None) -> None:
    """Have a forward pass wait, if it does, once the values that come before it are computed."""
    if turn is None:
        return
    values = [env[n] for n in (*turn.held, *turn.awaited)]
    for n, value in zip(turn.held, barrier(*values, n=len(turn.held)), strict=False):
        env[n] = value


def _passes(
    entries: Sequence[Input | Node], differentiated: Collection[int]
) -> list[tuple[int, int]]:
    """Return where each forward pass begins, and where the backward pass that follows does."""
    passes: list[tuple[int, int]] = []
    start: int | None = None
    backward = False
    for e, entry in enumerate(entries):
        if is_gradient(entry):
            if start is not None and not backward:
                passes.append((start, e))
                backward = True
        elif e in differentiated and (start is None or backward):
            start, backward = e, False
    return passes


def _inputs(entry: Input | Node) -> tuple[int, ...]:
    return entry.inputs if isinstance(entry, Node) else ()
