"""Recording an op on hundreds of tensors at once: a model's parameters.

Entering each by itself would cost a microsecond a tensor and step. So the whole call is one
remembered step, keyed by what its tensors are; a hit hands their arrays over in one go.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from leafax.functional import Op

from ._budget import cut_for_budget
from ._enter import make
from ._host import entering
from ._record import apply, over_budget
from ._trace import State, Trace, Value, local

FEW = 8  # tensors up to which the ordinary way is as quick


class CallMemo(NamedTuple):
    """Where a call led.

    Attributes:
      state: the state after it.
      entered: which of its tensors were at rest before, and the values that they entered as.
    """

    state: State
    entered: tuple[tuple[int, Value], ...]


def apply_many(op: Op, tensors: list[Any]) -> Any:
    """`apply(op, *tensors)` for an op with several results."""
    if len(tensors) <= FEW or local.mode.hooks or local.mode.dual:
        return apply(op, *tensors)
    if over_budget(local.trace):
        cut_for_budget(local.trace)
    trace = local.trace
    start = trace.state
    key = ("many", op, *[t._v for t in tensors])
    memo = start.next.get(key)
    if memo is not None and _is_plain(trace, tensors):
        _replay(trace, memo, tensors)
        return tuple([make(v, trace) for v in memo.state.values])
    plain = memo is None and _is_plain(trace, tensors)
    resting = [i for i, t in enumerate(tensors) if t._v.index < 0]
    before = len(trace.arrays)
    outs = apply(op, *tensors)
    if plain and local.trace is trace and len(trace.arrays) == before + len(resting):
        start.next[key] = CallMemo(trace.state, tuple((i, tensors[i]._v) for i in resting))
    return outs


def _is_plain(trace: Trace, tensors: list[Any]) -> bool:
    """Whether each is another tensor, in the trace or at rest with an array of its own."""
    for t in tensors:
        if t._v.index >= 0:
            if t._trace is not trace:
                return False
        elif t._array is None or t._store is not None:
            return False
    return len({id(t) for t in tensors}) == len(tensors)


def _replay(trace: Trace, memo: CallMemo, tensors: list[Any]) -> None:
    arrays, refs = trace.arrays, trace.refs
    nbytes = 0
    for i, value in memo.entered:
        t = tensors[i]
        arrays.append(t._array if type(t._array) is not np.ndarray else entering(t))
        t._v = value
        t._trace = trace
        refs.append(ref(t))
        nbytes += value.nbytes
        if value.role:
            trace.sources[value] = t
        if t._vc is not None:
            trace.versions[value.storage] = t._vc[0]
    trace.nbytes += nbytes
    trace.state = memo.state
