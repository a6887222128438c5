"""Tensors at rest that a remembered step takes into the trace, and writes to at once.

What enters, and which of it the step writes to, is the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any
from weakref import ref

import numpy as np

from .._core.host_transfer import entering
from .._core.transforms_running import active
from .._core.trie import LEAF, Trace, Value, local
from .._storage.write import bump
from .._tracing.inputs import Source
from .._tracing.undo import Write

_ndarray, _new = np.ndarray, tuple.__new__


class Entering:
    """All tensors with arrays of their own that a step enters, in the order of their inputs.

    Args:
      values: that they get, by their places among the step's tensors.
      writes: what some of them, by their places, hold after the step, and how often their version
        counters count then.

    Attributes:
      nbytes: what they weigh.
    """

    __slots__ = ("nbytes", "_asks", "_kinds", "_twins", "_values", "_writes")

    def __init__(
        self, values: dict[int, Value], writes: dict[int, tuple[Value, int]] | None = None
    ) -> None:
        # Plain tuples in a tuple: those Python takes apart at once.
        self._kinds = tuple([(i, v.resting) for i, v in values.items()])
        self._values = tuple([(i, v, v.storage, v.role) for i, v in values.items()])
        self._writes = tuple([(i, values[i], *w) for i, w in (writes or {}).items()])
        pairs = combinations(self._kinds, 2)
        self._twins = tuple([(i, j) for (i, kind), (j, other) in pairs if kind is other])
        self._asks = bool(self._twins or self._writes)
        self.nbytes = sum(v.nbytes for v in values.values())

    def take(self, trace: Trace, tensors: Sequence[Any]) -> bool:
        """Enter the tensors; False, with nothing done, if one is not as it was.

        `sharing` is held: no other thread writes to a tensor between the look at its array and its
        entry. `put` and `rebind` without their calls, each of which costs a microsecond where a
        step's computation has just swept the caches.
        """
        entered = trace.entered
        for i, kind in self._kinds:
            t = tensors[i]
            if t._v is not kind or t._trace is not None or t._shares or t._array is None:
                return False
            if id(t) in entered:
                return False
        if self._asks and not self._may(tensors):
            return False
        arrays, refs = trace.arrays, trace.refs
        for i, value, storage, role in self._values:
            t = tensors[i]
            held = array = t._array
            if type(array) is _ndarray:
                array = entering(t)
                held = t._array
            arrays.append(array)
            if role:
                direct = role == LEAF or t._node is None
                trace.sources[value] = t if direct else Source(t._node, t._out)
                counter = t._vc  # which updates have made; those without one are asked of the dict
            else:
                counter = t.__dict__.get("_vc")
            if counter is not None:
                trace.versions[storage] = counter[0]
            me = ref(t)
            entered[id(t)] = (me, value, id(held))
            t._v = value
            t._trace = trace
            refs.append(me)
        trace.nbytes += self.nbytes
        if self._writes:
            self._write(trace, tensors)
        return True

    def _write(self, trace: Trace, tensors: Sequence[Any]) -> None:
        for i, value, after, counts in self._writes:
            t = tensors[i]
            trace.memory.undo.append(_new(Write, (ref(t), value, True, None)))
            t._v = after
            t._array = None
            if counts:
                bump(t, counts)

    def _may(self, tensors: Sequence[Any]) -> bool:
        for i, j in self._twins:
            if tensors[i] is tensors[j]:
                return False
        if self._writes and (local.autograd.guard is not None or active.depth):
            return False
        for i, _, _, _ in self._writes:
            t = tensors[i]
            if t._node is not None or t._retains or t._hooks:
                return False
        return True
