"""What a call of a public function came to, done again at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

from .._core.cast_tensors import casts
from .._core.locks import running, sharing
from .._core.transforms_running import active
from .._core.trie import State, Trace, Value, local
from .._core.view_ops import Lens, read_of
from .._host.rule import memory_of
from .._storage.pending_views import view_again
from .._storage.shared_storage import share
from .._storage.write import bump, rebind, written_once
from .._tracing import inputs
from .._tracing.inputs import make, put

MISSED: Any = object()  # what `KeptCall.take` returns where it has done nothing


class Given(NamedTuple):
    """A result that is one of the call's own tensors."""

    place: int

    def make(self, trace: Trace, tensors: list[Any]) -> Any:
        """Return the tensor."""
        return tensors[self.place]


class Constant(NamedTuple):
    """A result that is no tensor."""

    what: Any

    def make(self, trace: Trace, tensors: list[Any]) -> Any:
        """Return what it is."""
        return self.what


class Fresh(NamedTuple):
    """A new tensor on a value, written to so often."""

    value: Value
    writes: int = 0

    def make(self, trace: Trace, tensors: list[Any]) -> Any:
        """Make the tensor again."""
        out = make(self.value, trace)
        return written_once(out, self.writes) if self.writes else out


@dataclass(frozen=True, slots=True)
class FreshView:
    """A view of a new tensor that nobody else has."""

    value: Value
    root: Value
    lens: Lens
    creation: str

    def make(self, trace: Trace, tensors: list[Any]) -> Any:
        """Make both again."""
        return view_again(make(self.root, trace), self.lens, self.value, self.creation, trace)


@dataclass(slots=True)
class View:
    """A view of one of the call's tensors, or of what this is a view of.

    Attributes:
      source: the place of the tensor that was given.
      above: how this reads its own base; () if it is the base, or shares nothing.
      lens: how the result reads the base.
      step: how it reads `source`.
      creation, of_source: the marks of the result and of the source, see `Handle`.
    """

    value: Value
    source: int
    above: Lens
    lens: Lens
    step: Lens
    creation: str
    of_source: str

    def fits(self, t: Any) -> bool:
        """Tell whether the source is a view as it was."""
        if t._creation != self.of_source:
            return False
        viewed = t._viewed
        if viewed is not None:
            if viewed[1] is not self.above:
                if viewed[1] != self.above or read_of(viewed[1]) != read_of(self.above):
                    return False
                self.above = viewed[1]  # the same next time, most likely
            return True
        if t._viewers is not None or not t._shares:
            return not self.above
        if t._store is None or t._stale is not None or type(t._blens) is not tuple:
            return False
        return bool(t._blens == self.above and t._lens == read_of(self.above))

    def make(self, trace: Trace, tensors: list[Any]) -> Any:
        """Make the view again; its source fits."""
        t = tensors[self.source]
        viewed = t._viewed
        if viewed is not None:
            root = viewed[0]
        else:
            root = t
            if t._viewers is None:
                if t._shares:
                    out = make(self.value, trace)
                    share(t, out, self.step, view=True, read=read_of(self.step))
                    if self.creation:
                        out._creation = self.creation
                    return out
                t._viewers, t._shares = [], True
        out = object.__new__(inputs._tensor_class)
        out._v = self.value
        out._trace = trace
        out._base_ = root
        out._viewed = root, self.lens
        out._shares = trace.memory.viewed = True
        if self.creation:
            out._creation = self.creation
        me = ref(out)
        trace.refs.append(me)
        root._viewers.append(me)
        return out


Result = Given | Constant | Fresh | FreshView | View


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
        """Let the tensor enter."""
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
    """What a call did beside making its results.

    Attributes:
      entries: of tensors that were at rest.
      writes: places of tensors that were written to, their new values, and how often it counted.
      casts: places of leaves that autocast has cast and keeps so, the dtype, the values.
    """

    entries: tuple[Entry, ...] = ()
    writes: tuple[tuple[int, Value, int], ...] = ()
    casts: tuple[tuple[int, Any, Value], ...] = ()


class KeptCall:
    """What a call did at one place of the trie.

    Attributes:
      state: the place after it.
      value: of its only result, where nothing else has to be done; else None.
      effects: what it did beside its results; None if nothing.
      plain: places and values of tensors that enter as they are, and what these are at rest;
        `read` instead where views of storages are among them.
      is_entry: nothing else was done beside the results.
      twins: places of tensors that enter and are alike: they must not be one.
      nbytes: what those that enter weigh.
      results: one, or those of the sequence that `wrap` makes; `views` are those among them.
      asks: all its tensors entered, from elsewhere than the host: there they are computed at once.
    """

    __slots__ = (
        "state", "value", "effects", "plain", "read", "twins", "nbytes", "results", "views",
        "view", "wrap", "asks", "is_entry",
    )  # fmt: skip

    def __init__(
        self, state: State, effects: Effects, results: list[Result],
        wrap: Callable[[list[Any]], Any] | None,
    ) -> None:  # fmt: skip
        self.state, self.results, self.wrap = state, results, wrap
        self.effects = effects if any(effects) else None
        into = effects.entries
        self.read = into if any(e.cell is not None for e in into) else ()
        plain = [(e.place, e.value, e.value.resting) for e in into]
        self.plain = [] if self.read else plain
        self.is_entry = bool(self.plain) and not (effects.writes or effects.casts)
        self.twins = tuple(
            (x.place, y.place)
            for i, x in enumerate(into) for y in into[:i]
            if x.value.resting is y.value.resting
        )  # fmt: skip
        self.nbytes = sum((e.cell or e.value).nbytes for e in into)
        self.views = [r for r in results if type(r) is View]
        alone = wrap is None and self.effects is None and len(self.views) == 1
        self.view = self.views[0] if alone else None
        self.asks = False
        self.value: Value | None = None
        if wrap is None and self.effects is None and type(results[0]) is Fresh:
            self.value = None if results[0].writes else results[0].value

    def take(self, trace: Trace, tensors: list[Any]) -> Any:
        """Do what the call did and return its result; MISSED if a tensor is not as it was."""
        view = self.view
        with sharing:
            if view is not None:  # most calls with more to do than to make a tensor
                t = tensors[view.source]
                viewed = t._viewed
                if viewed is None or viewed[1] is not view.above or t._creation != view.of_source:
                    if not view.fits(t):
                        return MISSED
                trace.state = self.state
                return view.make(trace, tensors)
            for view in self.views:
                if not view.fits(tensors[view.source]):
                    return MISSED
            if self.effects is not None:
                if self.plain and not self._may_enter(trace, tensors):
                    return MISSED
                if not self.is_entry and not self._may(self.effects, trace, tensors):
                    return MISSED
                for i, value, _ in self.plain:
                    put(tensors[i], value, trace)
                if not self.is_entry:
                    self._do(self.effects, trace, tensors)
                trace.nbytes += self.nbytes
            trace.state = self.state
            if self.wrap is None:
                return self.results[0].make(trace, tensors)
            return self.wrap([r.make(trace, tensors) for r in self.results])

    def _may_enter(self, trace: Trace, tensors: list[Any]) -> bool:
        if running or self.asks and memory_of(tensors[0]) is not None:
            return False
        entered = trace.entered
        for i, _, kind in self.plain:
            t = tensors[i]
            if t._v is not kind or t._trace is not None or t._array is None or t._shares:
                return False  # another thread may have changed it just now
            if id(t) in entered:
                return False
        for i, j in self.twins:
            if tensors[i] is tensors[j]:
                return False
        return True

    def _may(self, effects: Effects, trace: Trace, tensors: list[Any]) -> bool:
        if self.read:
            if running or self.asks and memory_of(tensors[0]) is not None:
                return False
            if not all(entry.may(tensors[entry.place], trace) for entry in self.read):
                return False
            if any(tensors[i] is tensors[j] for i, j in self.twins):
                return False
        if effects.writes:
            if local.autograd.guard is not None or active.depth:
                return False
            for i, _, _ in effects.writes:
                t = tensors[i]
                if t._shares or t._node is not None or t._retains or t._hooks:
                    return False
        return True

    def _do(self, effects: Effects, trace: Trace, tensors: list[Any]) -> None:
        for entry in self.read:
            entry.enter(tensors[entry.place], trace)
        trace.state = self.state  # writes are notes of the trace
        for i, value, counts in effects.writes:
            t = tensors[i]
            for _ in range(counts):
                bump(t)
            rebind(t, value)
        for i, to, value in effects.casts:
            t = tensors[i]
            casts.kept[id(t), to, self.state.mode.grad] = ref(t), make(value, trace)
