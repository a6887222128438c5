"""Residuals: the arrays of a node's `jax.vjp` closure that backward keeps over a cut.

They are returned by the program that ran the node, and taken by the one that has its gradient
(`ResidualCall`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import jax

from ..program.program import Aval
from .differentiate import Pullback, PullMeta, differentiate
from .keys import is_key, without_keys
from .vjp import ResidualCall


class Residual:
    """A recipe that rebuilds one node's pullback from the arrays that a program returned.

    Attributes:
      treedef: the structure of the `jax.vjp` closure, its random keys as their numbers.
      meta: what a `Pullback` knows beside it.
      places: where the closure's leaves are in the list of returned residuals.
      calls: the gradients that were taken from it, by what they are given and take.
    """

    __slots__ = ("treedef", "meta", "places", "calls")

    def __init__(self, treedef: Any, meta: PullMeta, places: tuple[int, ...]) -> None:
        self.treedef, self.meta, self.places = treedef, meta, places
        self.calls: dict[Any, ResidualCall] = {}

    def arrays(self, returned: Sequence[Any]) -> tuple[Any, ...]:
        """Pick the leaves of the closure out of all that a run returned."""
        return tuple([returned[i] for i in self.places])


class Leaves:
    """The leaves of closures as one list, in which what several share stands once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._seen: dict[int, int] = {}

    def add(self, closure: Pullback) -> Residual:
        flat, treedef = jax.tree.flatten(closure.pull)
        if any(map(is_key, flat)):
            treedef = jax.tree.structure(without_keys(closure.pull))
        places = []
        for leaf in flat:
            if id(leaf) not in self._seen:
                self._seen[id(leaf)] = len(self.arrays)
                self.arrays.append(jax.random.key_data(leaf) if is_key(leaf) else leaf)
            places.append(self._seen[id(leaf)])
        return Residual(treedef, closure.meta, tuple(places))


class KeepingCall:
    """A call that returns the leaves of its pullback as well: `(*outputs, *leaves)`.

    Attributes:
      call: the call.
      wanted: positions of the inputs to differentiate.
      residual: where the leaves are in what follows the outputs; known once it was traced.
    """

    __slots__ = ("call", "wanted", "residual", "__weakref__")

    residual: Residual

    def __init__(self, call: Any, wanted: tuple[int, ...]) -> None:
        self.call, self.wanted = call, wanted

    @property
    def op(self) -> Any:
        return getattr(self.call, "op", None)

    @property
    def name(self) -> str:
        return str(self.call.name)

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        outs, closure = differentiate(self.call.evaluate, arrays, self.wanted)
        leaves = Leaves()
        self.residual = leaves.add(closure)
        return (*outs, *leaves.arrays)


_KEEPING: weakref.WeakValueDictionary[Any, KeepingCall] = weakref.WeakValueDictionary()


def keeping_of(call: Any, wanted: tuple[int, ...], avals: tuple[Aval, ...]) -> KeepingCall:
    """Return the one `KeepingCall` for inputs like these: its leaves depend on their shapes."""
    key = (call, wanted, avals)
    made = _KEEPING.get(key)
    if made is None:
        made = _KEEPING[key] = KeepingCall(call, wanted)
    return made
