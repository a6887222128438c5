"""Backward slices: the part of a program that some of its values come from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeVar

from .program import Input, Node, Program

S = TypeVar("S")
V = TypeVar("V", bound=Hashable)


class PlacedEntry(NamedTuple):
    """An entry of a program, with its place there.

    Attributes:
      place: names the entry where others refer to it: as `primal`, or in a list of residuals.
      first: number of the first value that it adds.
      entry: an `Input` or a `Node`.
      array: what an input holds, if that is known.
    """

    place: Any
    first: int
    entry: Any
    array: Any = None

    @property
    def values(self) -> range:
        return range(self.first, self.first + len(self.entry.avals))


def placed_entries(program: Program) -> list[PlacedEntry]:
    """List a program's entries with their places."""
    firsts = enumerate(program.first_values())
    return [PlacedEntry(e, first, program.entries[e]) for e, first in firsts]


def needed_steps(
    steps: Iterable[S], wanted: Iterable[V], made: Callable[[S], Iterable[V]],
    read: Callable[[S], Iterable[V]], known: Set[V] = frozenset(),
) -> Iterator[tuple[S, set[V]]]:  # fmt: skip
    """Yield the steps that wanted values come from, the last first.

    Args:
      steps: all of them, the last first; they are taken until nothing is wanted any more.
      wanted: the values that are asked for, by anything that names them.
      made: gives the values that a step makes.
      read: gives those that it takes.
      known: values that are there already. What a step takes is not needed if all that is wanted
        of it is known.

    Returns:
      An iterator of steps, each with those of its values that are wanted.

    >>> steps = [("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b"])]
    >>> made, read = (lambda step: step[:1]), (lambda step: step[1])
    >>> [step[0] for step, _ in needed_steps(reversed(steps), ["d"], made, read)]
    ['d', 'b', 'a']
    """
    left = set(wanted)
    for step in steps:
        mine = left.intersection(made(step))
        if mine:
            left -= mine
            if not known >= mine:
                left.update(read(step))
            yield step, mine
            if not left:
                return


def needed_entries(
    entries: Iterable[PlacedEntry], wanted: Iterable[int], known: Mapping[int, Any] | None = None
) -> Iterator[PlacedEntry]:
    """Yield the entries that wanted values come from, the last first.

    Args:
      entries: those of the program, the last first.
      wanted: numbers of the values.
      known: arrays of values that were computed, by number: they become inputs, in place of the
        nodes that compute them.

    Returns:
      An iterator of entries. In order, they are what `renumber` takes.
    """
    known = {} if known is None else known
    needed = needed_steps(entries, wanted, lambda e: e.values, _inputs, known.keys())
    for placed, mine in needed:
        if known.keys() >= mine:
            for v in sorted(mine, reverse=True):
                yield PlacedEntry(None, v, Input(placed.entry.avals[v - placed.first]), known[v])
        else:
            yield placed


def _inputs(placed: PlacedEntry) -> tuple[int, ...]:
    return placed.entry.inputs if isinstance(placed.entry, Node) else ()


def renumber(
    entries: Iterable[PlacedEntry], outputs: Sequence[int],
    residuals: Sequence[tuple[Any, tuple[int, ...]]] = (),
) -> Program:  # fmt: skip
    """Make a part of a program a program of its own.

    Args:
      entries: the part, in order; all that its nodes take is in it.
      outputs: numbers of the returned values, as they were in the whole.
      residuals: as those of a `Program`, with places in the whole.

    Returns:
      The program; its values are numbered anew. A gradient node whose primal is left out has none.
    """
    number: dict[int, int] = {}
    place: dict[Any, int] = {}
    made: list[Any] = []
    for placed in entries:
        entry = placed.entry
        place[placed.place] = len(made)
        if isinstance(entry, Node):
            inputs = tuple([number[v] for v in entry.inputs])
            primal = place.get(entry.primal) if entry.primal is not None else None
            if inputs != entry.inputs or primal != entry.primal:
                entry = Node(entry.call, inputs, entry.avals, primal, entry.where)
        for v in placed.values:
            number[v] = len(number)
        made.append(entry)
    return Program(
        tuple(made),
        tuple(number[v] for v in outputs),
        tuple((place[e], wanted) for e, wanted in residuals),
    )
