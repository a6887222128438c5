"""Calls on hundreds of tensors at once, such as a model's parameters.

Entering each by itself would cost a microsecond a tensor and step. So the whole call is one
remembered step, keyed by what its tensors are; a hit hands their arrays over in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.op import Op

from .._core.host_transfer import entering
from .._core.locks import sharing
from .._core.trie import Trace, Value, local
from .._tracing.inputs import make
from .._tracing.leaf_tuples import Leaves
from .._tracing.loop_cuts import cut_for_budget, over_budget
from .macro_steps import MacroStep
from .record import apply

_VALUE, _ARRAY, _SHARES = attrgetter("_v"), attrgetter("_array"), attrgetter("_shares")
_NOTHING = type(None)

FEW = 8  # tensors up to which the ordinary way is as quick


class Picks:
    """Ways of a call's tensors into the trace, in loops that Python's C code runs.

    Attributes:
      pending: the places of the tensors that were in the trace before.
      pick: takes those that were not from the list of all, in the order of their inputs.
      marked: the values of those of them that are marked as entered; `pick_marked` takes these
        tensors.
      edges: those of `marked` that gradients flow through, and `pick_edges` their tensors.
      unmarked: the values of leaves that autograd has nothing to do with; `pick_unmarked` takes
        these from the leaves.
    """

    def __init__(self, count: int, entered: list[tuple[int, Value]], leaves: int) -> None:
        inside = {i for i, _ in entered}
        self.pending = tuple(i for i in range(count) if i not in inside)
        self.pick = _picking([i for i, _ in entered])
        marked = [(i, v) for i, v in entered if v.role or i >= leaves]
        self.marked = tuple(v for _, v in marked)
        self.pick_marked = _picking([i for i, _ in marked])
        self.edges = tuple(v for v in self.marked if v.role)
        self.pick_edges = _picking([i for i, v in marked if v.role])
        unmarked = [(i, v) for i, v in entered if not v.role and i < leaves]
        self.unmarked = tuple(v for _, v in unmarked)
        self.pick_unmarked = _picking([i for i, _ in unmarked])


def _picking(places: list[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    if not places:
        return lambda tensors: ()
    if len(places) == 1:
        return lambda tensors: (tensors[places[0]],)
    return itemgetter(*places)


def apply_many(op: Op, leaves: Leaves, others: list[Any]) -> Any:
    """Record an op with several results as `apply(op, *leaves, *others)` does."""
    tensors = [*leaves, *others]
    if len(tensors) <= FEW or local.mode.hooks or local.mode.dual or not _distinct(leaves, others):
        return apply(op, *tensors)
    if over_budget(local.trace):
        cut_for_budget(local.trace)
    trace = local.trace
    if leaves:
        trace.bulk = (*trace.bulk, leaves)
    start = trace.state
    key = ("many", op, *map(_VALUE, tensors))
    step = start.next.get(key)
    if step is not None and _take(step, trace, leaves, tensors):
        return tuple([make(v, trace) for v in step.state.values])
    plain = step is None and _are_plain(trace, tensors)
    resting = [i for i, t in enumerate(tensors) if t._v.index < 0]
    before = len(trace.arrays)
    outs = apply(op, *tensors)
    if plain and local.trace is trace and len(trace.arrays) == before + len(resting):
        entered = [(i, tensors[i]._v) for i in resting]
        picks = Picks(len(tensors), entered, len(leaves))
        nbytes = sum(v.nbytes for _, v in entered)
        start.next[key] = MacroStep(trace.state, nbytes=nbytes, effects=picks)
    return outs


def _distinct(leaves: Leaves, others: list[Any]) -> bool:
    ids = {*map(id, others)}
    return leaves.distinct and len(ids) == len(others) and leaves._ids.isdisjoint(ids)


def _are_plain(trace: Trace, tensors: list[Any]) -> bool:
    """Tell whether each is in the trace, or at rest with an array of its own and not in it."""
    for t in tensors:
        if t._v.index >= 0:
            if t._trace is not trace:
                return False
        elif t._array is None or t._shares or id(t) in trace.entered:
            return False
    return True


def _take(step: MacroStep, trace: Trace, leaves: Leaves, tensors: list[Any]) -> bool:
    """Take a remembered step; False if a tensor is no longer as plain as it was."""
    picks: Picks = step.effects
    for i in picks.pending:
        if tensors[i]._trace is not trace:
            return False
    with sharing:  # a tensor is not written to between the look at its array and its entry
        resting = picks.pick(tensors)
        if len(trace.bulk) > 1 and not trace.entered.keys().isdisjoint(map(id, resting)):
            return False
        arrays = list(map(_ARRAY, resting))
        kinds = set(map(type, arrays))
        if _NOTHING in kinds or any(map(_SHARES, resting)):
            return False
        if np.ndarray in kinds:
            for k, array in enumerate(arrays):
                if type(array) is np.ndarray:
                    arrays[k] = entering(resting[k])
        marked = picks.pick_marked(tensors)
        for t, value in zip(marked, picks.marked, strict=True):
            t._trace = None
            t._v = value
            t._trace = trace
            if t._vc is not None:
                trace.versions[value.storage] = t._vc[0]
        if picks.unmarked:
            frozen, refs = picks.pick_unmarked(leaves), picks.pick_unmarked(leaves._refs)
            facts = zip(refs, picks.unmarked, map(id, map(_ARRAY, frozen)), strict=True)
            trace.entered.update(zip(map(id, frozen), facts, strict=True))
    trace.refs += map(ref, marked)
    trace.sources.update(zip(picks.edges, picks.pick_edges(tensors), strict=True))
    trace.arrays += arrays
    trace.nbytes += step.nbytes
    trace.state = step.state
    return True
