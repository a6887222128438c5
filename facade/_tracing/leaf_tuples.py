"""Tensors at rest that enter a trace in one go, and do not know it.

A model's frozen leaves are hundreds of tensors that a step only reads. Their arrays become inputs
of the program, but to mark each of them as such (and to let it leave when the program has run)
would cost more than all else that the step does in Python. `Trace.entered` knows their values;
when one of them is met again, or a graph outlives the program, `mark_entered` makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
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
    _refs: tuple[ref[Any], ...]

    def __new__(cls, tensors: Iterable[Any]) -> Leaves:
        self = super().__new__(cls, tensors)
        wrong = [type(t).__name__ for t in self if not isinstance(t, Handle)]
        if wrong:
            raise TypeError(f"Leaves are tensors, got {wrong[0]}")
        self._ids = frozenset(map(id, self))
        self._refs = tuple(map(ref, self))
        self.distinct = len(self._ids) == len(self)
        return self

    def __contains__(self, t: object) -> bool:
        return id(t) in self._ids

    def __reduce__(self) -> Any:
        return Leaves, (tuple(self),)  # a copy has tensors of its own


# To JAX it is a tuple, wherever it stands.
jax.tree_util.register_pytree_node(Leaves, lambda ts: (tuple(ts), None), lambda _, ts: tuple(ts))  # type: ignore[arg-type, return-value]


def frozen_inputs(trace: Trace) -> tuple[int, ...]:
    """Return which inputs of the trace are frozen leaves of models that it did not write to."""
    if not trace.bulk:
        return ()
    places = {id(array): i for i, array in enumerate(trace.arrays)}
    frozen = [t for leaves in trace.bulk for t in leaves if not t._v.role]
    held = {id(t._array) for t in frozen if t._array is not None}
    return tuple(sorted(places[array] for array in held & places.keys()))


def mark_entered(t: Any, value: Value, trace: Trace) -> None:
    """Turn a tensor at rest, whose array is an input of the trace already, into that input."""
    t._trace = None
    t._v, t._trace = value, trace
    trace.memory.viewed |= t._shares
    trace.refs.append(ref(t))
    if t._vc is not None:
        trace.versions[value.storage] = t._vc[0]


def mark_all_entered(trace: Trace) -> None:
    """Mark the leaves that entered in one go: who looks for the tensor of a value finds them."""
    for holder, value, held in tuple(trace.entered.values()) if trace.bulk else ():
        t = holder()
        # One that was given another value or role since then is not what entered.
        if t is not None and t._trace is None and t._v is value.resting and id(t._array) == held:
            mark_entered(t, value, trace)
