"""Bundles: arrays that programs take and replace, for which no tensors exist meanwhile.

An optimizer's state is hundreds of tensors that nobody looks at between two steps. To let each
enter a program and leave it costs more than the rest of the step. A `Bundle` has their arrays in a
list, and makes the tensors when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from threading import get_ident
from typing import Any, NamedTuple
from weakref import WeakSet

from .._core.locks import ended, running, sharing
from .._core.trie import Trace, Value
from . import inputs

#: Objects with a field `state` whose bundles are released when it is asked for.
holders: WeakSet[Any] = WeakSet()


class Kinds(NamedTuple):
    """Values that a bundle's tensors would hold.

    Attributes:
      values: in the trace.
      numbers: of these values.
      resting: their values at rest.
    """

    values: tuple[Value, ...]
    numbers: tuple[int, ...]
    resting: tuple[Value, ...]

    @classmethod
    def of(cls, values: Sequence[Value]) -> Kinds:
        """Return what is known of values."""
        numbers = tuple([v.index for v in values])
        return cls(tuple(values), numbers, tuple([v.resting for v in values]))


class Bundle:
    """Tensors of which only the arrays are there.

    Args:
      slots: the dicts in which tensors stand, and their names there. They are at rest, each with
        an array of its own, and nobody else holds them.

    Attributes:
      kinds: of the tensors.
      arrays: theirs; None while they are being replaced by a program.
      trace: of that program, None when they are at rest.
      tensors: those that were made of it: then it is of no use any more.
    """

    __slots__ = ("_slots", "_places", "_pick", "kinds", "arrays", "trace", "tensors")

    def __init__(self, slots: Sequence[tuple[dict[str, Any], str]]) -> None:
        tensors = [held[name] for held, name in slots]
        self._slots = slots
        self._places: Any = None
        self._pick: Any = None
        self.kinds = Kinds.of([t._v for t in tensors])
        self.arrays: list[Any] | None = [t._array for t in tensors]
        self.trace: Trace | None = None
        self.tensors: list[Any] | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tensors or ())

    def enter(self, trace: Trace, kinds: Kinds) -> None:
        """Enter the arrays as inputs of the trace, whose values replace them.

        Args:
          kinds: what is known of these values.
        """
        trace.arrays += self.arrays  # type: ignore[arg-type]
        self.trace, self.kinds, self.arrays = trace, kinds, None
        trace.memory.bundles += (self,)

    def leave(self, outputs: Sequence[Any], places: dict[int, int]) -> None:
        """Take the arrays from a program's outputs.

        Args:
          places: of the outputs, by the numbers of their values.
        """
        if self.trace is None:
            return
        if self.tensors is not None:
            self._settle(outputs, places)
            return
        if self._places is not places:
            at = [places[n] for n in self.kinds.numbers]
            self._places, self._pick = places, itemgetter(*at, at[0])  # a tuple in any case
        arrays = list(self._pick(outputs))
        arrays.pop()
        self.arrays, self.trace = arrays, None

    def _settle(self, outputs: Sequence[Any], places: dict[int, int]) -> None:
        """Give the tensors their arrays, which were made while the program ran."""
        for t in self.tensors or ():
            place = places.get(t._v.index)
            if t._trace is self.trace and t._array is None and place is not None and not t._shares:
                t._v, t._trace, t._array = t._v.resting, None, outputs[place]
        self.trace = None

    def give_back(self, arrays: list[Any]) -> None:
        """Hold the arrays again that entered a program, which failed."""
        if self.trace is not None and self.tensors is None:
            self.arrays, self.trace = arrays, None

    def release(self) -> None:
        """Make the tensors, and put them into their dicts."""
        with sharing:
            while self.trace is not None and running.get(self.trace, get_ident()) != get_ident():
                ended.wait()
            if self.tensors is not None:
                return
            if self.trace is None:
                made = [
                    _resting(*x) for x in zip(self.kinds.resting, self.arrays or (), strict=True)
                ]
            else:
                made = [inputs.make(v, self.trace) for v in self.kinds.values]
            for (held, name), t in zip(self._slots, made, strict=True):
                held[name] = t
            self.tensors, self.arrays = made, None


def _resting(kind: Value, array: Any) -> Any:
    t = object.__new__(inputs._tensor_class)
    t._v, t._array, t._trace = kind, array, None
    return t


def pending_bundles(trace: Trace) -> list[Bundle]:
    """List the bundles whose arrays a trace computes."""
    return [b for b in trace.memory.bundles if b.tensors is None]


def release_all() -> None:
    """Release every bundle: somebody looks for tensors without asking for an object's `state`."""
    for holder in list(holders):
        holder.state  # noqa: B018 # the look does it
