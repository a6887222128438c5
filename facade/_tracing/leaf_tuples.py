"""Tensors at rest that entered a trace in one go, and were not told so.

A model's frozen leaves are hundreds of tensors that a step only reads. Their arrays become inputs
of the program, but to enter each of them (and to let it leave when the program has run) would
cost more than all else that the step does in Python. So the trace notes the lot; only when one of
them is met again, or when a graph outlives the program, `tell` makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import ref

import jax

from .._core.handle import Handle
from .._core.trie import Trace, Value


class Leaves(tuple[Any, ...]):
    """A tuple of tensors that is handed to `call_jax` time and again, as its first argument.

    For the hundreds of tensors of a model: what the calls have in common is worked out once. The
    function sees a plain tuple.

    Raises:
      TypeError: something else than a tensor is among them.

    >>> import leafax
    >>> weights = leafax.Leaves([leafax.ones(2), leafax.full((2,), 3.0)])
    >>> leafax.call_jax(lambda ws, x: ws[0] * x + ws[1], weights, leafax.ones(2))
    tensor([4., 4.])
    """

    distinct: bool
    _ids: frozenset[int]

    def __new__(cls, tensors: Iterable[Any]) -> Leaves:
        self = super().__new__(cls, tensors)
        wrong = [type(t).__name__ for t in self if not isinstance(t, Handle)]
        if wrong:
            raise TypeError(f"Leaves are tensors, got {wrong[0]}")
        self._ids = frozenset(map(id, self))
        self.distinct = len(self._ids) == len(self)
        return self

    def __contains__(self, t: object) -> bool:
        return id(t) in self._ids

    def __reduce__(self) -> Any:
        return Leaves, (tuple(self),)  # a copy has tensors of its own


# To JAX it is a tuple, wherever it stands.
jax.tree_util.register_pytree_node(Leaves, lambda ts: (tuple(ts), None), lambda _, ts: tuple(ts))  # type: ignore[arg-type, return-value]


class Entry(NamedTuple):
    """What the trace notes: the value of each leaf that it took at rest, by its place.

    Attributes:
      leaves: the tensors.
      values: for each leaf that was at rest: its place, which of the inputs it became, its value.
      first: where their arrays begin among the trace's.
    """

    leaves: Leaves
    values: tuple[tuple[int, int, Value], ...]
    first: int


def note(trace: Trace, entry: Entry) -> None:
    """Remember that these are in the trace."""
    trace.together = (*trace.together, entry)


def has(trace: Trace, t: Any) -> bool:
    """Whether `t` is in the trace without knowing it."""
    return any(t in entry.leaves for entry in trace.together)


def still(trace: Trace) -> tuple[int, ...]:
    """Those inputs of the trace that are frozen leaves of models, which it did not write to."""
    if not trace.bulk:
        return ()
    places = {id(array): i for i, array in enumerate(trace.arrays)}
    frozen = [t for leaves in trace.bulk for t in leaves if not t._v.role]
    held = {id(t._array) for t in frozen if t._array is not None}
    return tuple(sorted(places[array] for array in held & places.keys()))


def tell(trace: Trace) -> None:
    """Let all those tensors know that they are in the trace."""
    entries, trace.together = trace.together, ()
    for leaves, values, first in entries:
        for place, k, value in values:
            t = leaves[place]
            # One that was given another value or role since then is not what entered.
            if t._v is value.resting and t._array is trace.arrays[first + k]:
                t._trace = None
                t._v, t._trace = value, trace
                trace.viewed |= t._shares
                trace.refs.append(ref(t))
                if t._vc is not None:
                    trace.versions[value.storage] = t._vc[0]
