"""Calls of public functions as they are kept: all that one did, to be done again at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

from .._core.cast_tensors import casts
from .._core.locks import running, sharing
from .._core.transforms_running import active
from .._core.trie import State, Trace, Value, local
from .._core.view_ops import Lens
from .._host.rule import memory_of
from .._storage.write import bump, rebind
from .._tracing.inputs import make, put
from .._tracing.loop_cuts import BUDGET_BYTES
from .._tracing.novelty import unrepeated
from .call_results import Fresh, FreshView, Result, View
from .entering import Entering

MISSED: Any = object()  # what `KeptCall.take` returns where it has done nothing


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor at rest that entered the trace.

    Attributes:
      place: of the tensor among those of the call.
      value: that it got.
      cell: that of its storage, where it is a view that was read; else None.
      lens: how it was read.
    """

    place: int
    value: Value
    cell: Value | None = None
    lens: Lens = ()

    def may(self, t: Any, trace: Trace) -> bool:
        """Tell whether the tensor may enter as it did."""
        if t._trace is not None or t._v is not self.value.resting:
            return False  # another thread has changed it just now
        if self.cell is None:
            return not t._shares and t._array is not None and id(t) not in trace.entered
        if not t._shares or t._viewed is not None or t._stale is not None or id(t) in trace.entered:
            return False
        store = t._store
        if store is None or t._vc is not store.vc or t._lens != self.lens:
            return False
        cell = store.cell
        if cell._trace is not None or cell._array is None or cell._shares:
            return False
        return id(cell) not in trace.entered and cell._v is self.cell.resting

    def enter(self, t: Any, trace: Trace) -> None:
        """Enter the tensor."""
        if self.cell is None:
            put(t, self.value, trace)
            return
        cell = t._store.cell
        put(cell, self.cell, trace)
        me = ref(t)
        trace.entered[id(t)] = me, self.value, id(cell._array)
        t._v, t._trace = self.value, trace
        trace.memory.viewed = True
        trace.refs.append(me)


class Effects(NamedTuple):
    """All that a call did beside making its results.

    Attributes:
      entries: of tensors that were at rest.
      writes: places of tensors that were written to, their new values, and how often it counted.
      casts: places of leaves that autocast has cast and keeps so, the dtype, the values.
    """

    entries: tuple[Entry, ...] = ()
    writes: tuple[tuple[int, Value, int], ...] = ()
    casts: tuple[tuple[int, Any, Value], ...] = ()


class KeptCall:
    """All that a call did at one place of the trie.

    Attributes:
      state: the place after it, and `nodes` up to there.
      fresh: the value of its only result, if that is a new tensor; else None. `value` is the same,
        but None if anything else has to be done.
      view: its only result, if that is a view of a tensor that was given and nothing else has to
        be done; else None.
      into: the tensors that enter as they are, with the writes to these; None if there are none.
      read: entries, where views of storages are among them. There are some if it `enters`.
      nbytes: what those of `read` weigh.
      more: what else it did beside its results, if anything.
      results: unless it is `fresh`, one, or those of the sequence that `wrap` makes; `views` of the
        call's tensors are among them, and views of these or of new ones if some are `seen` through
        a lens.
      asks: all its tensors entered, from elsewhere than the host: there they are computed at once.
      simple: tensors that enter as they are, and writes to them, are all beside new results.
    """

    __slots__ = (
        "state", "nodes", "value", "fresh", "view", "into", "read", "enters", "nbytes", "more",
        "results", "views", "seen", "wrap", "asks", "simple",
    )  # fmt: skip

    def __init__(
        self, state: State, effects: Effects, results: list[Result],
        wrap: Callable[[list[Any]], Any] | None, asks: bool,
    ) -> None:  # fmt: skip
        self.state, self.nodes, self.wrap = state, state.nodes, wrap
        entries = effects.entries
        self.enters = bool(entries)
        self.read = entries if any(e.cell is not None for e in entries) else ()
        self.nbytes = sum((e.cell or e.value).nbytes for e in self.read)
        values = {} if self.read else {e.place: e.value for e in entries}
        written = {i: (value, counts) for i, value, counts in effects.writes if i in values}
        self.into = Entering(values, written) if values else None
        writes = tuple([w for w in effects.writes if w[0] not in written])
        self.views = tuple([r for r in results if type(r) is View])
        self.seen = any(type(r) is View or type(r) is FreshView for r in results)
        others = self.read or writes or effects.casts or self.views
        self.more = effects._replace(writes=writes) if others else None
        self.asks = asks
        self.simple = not (asks or others or self.seen)
        first = results[0] if len(results) == 1 and wrap is None else None
        fresh = first.value if type(first) is Fresh and not first.writes else None
        self.fresh: Value | None = fresh
        self.results = () if fresh is not None else tuple(results)
        self.value = None if any(effects) else fresh
        self.view = first if type(first) is View and not any(effects) else None

    def take(self, trace: Trace, tensors: list[Any], recorded: bool = False) -> Any:
        """Do what the call did and return its result; MISSED if a tensor is not as it was.

        Args:
          recorded: also in loops of which calls are computed at once.
        """
        view = self.view
        with sharing:
            if view is not None:  # most calls with more to do than to make a tensor
                if local.settings.view_replay:
                    return MISSED
                t = tensors[view.source]
                viewed = t._viewed
                if viewed is None or viewed[1] is not view.above or t._creation != view.of_source:
                    if not view.fits(t):
                        return MISSED
                trace.state = self.state
                return view.make(trace, tensors)
            into = self.into
            if self.enters and (running or unrepeated or trace.nbytes > BUDGET_BYTES):
                if running or trace.nbytes > BUDGET_BYTES or not recorded:
                    return MISSED  # and what is done then may cut
            if not (self.simple or self._may(trace, tensors)):
                return MISSED
            if into is not None and not into.take(trace, tensors):
                return MISSED
            trace.state = self.state
            if self.more is not None:
                self._do(self.more, trace, tensors)
            if self.fresh is not None:
                return make(self.fresh, trace)
            if self.wrap is None:
                return self.results[0].make(trace, tensors)
            return self.wrap([r.make(trace, tensors) for r in self.results])

    def _may(self, trace: Trace, tensors: list[Any]) -> bool:
        if self.seen and local.settings.view_replay:
            return False
        if self.asks and memory_of(tensors[0]) is not None:
            return False
        more = self.more
        if more is None:
            return True
        for view in self.views:
            if not view.fits(tensors[view.source]):
                return False
        if self.read and len({id(tensors[e.place]) for e in self.read}) < len(self.read):
            return False
        for entry in self.read:
            if not entry.may(tensors[entry.place], trace):
                return False
        if more.writes:
            if local.autograd.guard is not None or active.depth:
                return False
            for i, _, _ in more.writes:
                t = tensors[i]
                if t._shares or t._node is not None or t._retains or t._hooks:
                    return False
        return True

    def _do(self, more: Effects, trace: Trace, tensors: list[Any]) -> None:
        for entry in self.read:
            entry.enter(tensors[entry.place], trace)
        trace.nbytes += self.nbytes
        for i, value, counts in more.writes:
            t = tensors[i]
            if counts:
                bump(t, counts)
            rebind(t, value)
        for i, to, value in more.casts:
            t = tensors[i]
            casts.kept[id(t), to, self.state.mode.grad] = ref(t), make(value, trace)
