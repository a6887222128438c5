"""Preludes of programs: what is computed before a turn's graph begins and has no part in it.

After `optimizer.step()` a loop adds the loss to a sum, or counts what was right. That is recorded
at the beginning of the next turn's program, from the second turn on, as another op each time until
the sum is a tensor. The turn itself is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from leafax.functional.lowering.lower import is_checked
from leafax.functional.lowering.vjp import is_gradient
from leafax.functional.program.program import Call, Input, Node, Program
from leafax.functional.program.slices import (
    PlacedEntry,
    needed_entries,
    placed_entries,
    renumber,
)

_MOST_NODES = 16  # of a prelude
_MOST_ARRAYS = 8  # that come into it, or out of it


class Part(NamedTuple):
    """A part of a program, as a program of its own.

    Attributes:
      inputs: for each of its inputs, the position in the whole.
      outputs: for each of its outputs, the position in the whole.
    """

    program: Program
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def without_prelude(program: Program, pairs: Iterable[tuple[int, int]]) -> tuple[Part, Part] | None:
    """Divide a program into its prelude and the rest; return None if it has none.

    Args:
      program: without residuals.
      pairs: positions of outputs, and of inputs that are needed where these are.
    """
    entries = placed_entries(program)
    roots = [v for p in entries if is_gradient(p.entry) or is_checked(p.entry) for v in p.values]
    turn = [p.place for p in needed_entries(reversed(entries), roots) if isinstance(p.entry, Node)]
    begin = min(turn, default=0)
    before = {v for p in entries[:begin] if _is_plain(p.entry) for v in p.values}
    found: list[int] = []
    parts: dict[int, PlacedEntry] = {}
    for k, v in enumerate(program.outputs):
        if v in before:
            mine = {p.place: p for p in needed_entries(reversed(entries[:begin]), [v])}
            if all(isinstance(p.entry, Input) or _is_plain(p.entry) for p in mine.values()):
                found.append(k)
                parts |= mine
    nodes = {e for e, p in parts.items() if isinstance(p.entry, Node)}
    few = len(nodes) <= _MOST_NODES and len(parts) - len(nodes) <= _MOST_ARRAYS
    if not found or len(found) > _MOST_ARRAYS or not few:
        return None
    left = [k for k in range(len(program.outputs)) if k not in found]
    wanted = [program.outputs[k] for k in left]
    rest = {p.place: p for p in needed_entries(reversed(entries), [*wanted, *roots])}
    if not nodes.isdisjoint(rest):
        return None
    inputs = [p for p in entries if isinstance(p.entry, Input)]
    rest |= {inputs[i].place: inputs[i] for k, i in pairs if k in left}
    return _part(program, parts, found), _part(program, rest, left)


def _is_plain(entry: Any) -> bool:
    return isinstance(entry, Node) and isinstance(entry.call, Call) and not is_checked(entry)


def _part(program: Program, entries: dict[int, PlacedEntry], outputs: list[int]) -> Part:
    position = {
        e: i for i, e in enumerate(e for e, x in enumerate(program.entries) if isinstance(x, Input))
    }
    inputs = tuple([position[e] for e in sorted(entries) if e in position])
    made = renumber([entries[e] for e in sorted(entries)], [program.outputs[k] for k in outputs])
    return Part(made, inputs, tuple(outputs))
