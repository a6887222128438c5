"""Effects of a call, found out after it was made for the first time at a place of the trie."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.program import Input

from .._core.cast_tensors import casts
from .._core.handle import tensors_in
from .._core.pieces import Pieces, read_of
from .._core.trie import NODE, NOWHERE, State, Trace, Value
from .._core.view_ops import Lens
from .._core.warn_once import warnings_due
from .._host.rule import memory_of
from .._tracing import inputs
from .._tracing.draws import is_draw
from .._tracing.inputs import rests
from .._tracing.undo import Write
from .call_results import Constant, Fresh, FreshView, Given, Result, View
from .kept_calls import Effects, Entry, KeptCall

_CONSTANT = frozenset({type(None), bool, int, float, str})
NUMBERS = "numbers"  # with a function: no call of it is kept at a place where numbers entered
_FRESH = {"_v", "_trace"}  # the fields of a tensor that nothing was done to


class Before:
    """A trace and a call's tensors before the call is made."""

    __slots__ = (
        "trace", "tensors", "state", "values", "ways", "counts", "shared", "inputs", "undo",
        "sources", "graph", "cast", "on_host", "warned",
    )  # fmt: skip

    def __init__(self, trace: Trace, tensors: list[Any]) -> None:
        self.trace, self.tensors, self.state = trace, tensors, trace.state
        self.values = [t._v for t in tensors]
        self.ways = [_way(t) if t._shares else None for t in tensors]
        self.counts = [_counted(t) for t in tensors]
        self.shared = [t._shares for t in tensors]
        self.inputs, self.undo = len(trace.arrays), len(trace.memory.undo)
        self.sources, self.graph = len(trace.sources), _notes(trace)
        self.cast = set(casts.kept) if trace.state.mode.autocast is not None else None
        self.on_host = bool(tensors) and memory_of(tensors[0]) is not None
        self.warned = warnings_due()

    def keep(self, key: Any, out: Any) -> None:
        """Keep what the call did under `key`, if that can be told."""
        trace, state = self.trace, self.trace.state
        path = state.since(self.state) if state is not self.state else []
        if state.mode is not self.state.mode or path and path[0].parent is not self.state:
            return
        if _notes(trace) != self.graph or warnings_due() != self.warned:  # it may warn again
            return
        if any(is_draw(s.entry) for s in path):  # each call takes keys of its own
            return
        new = {v for s in path for v in s.values}
        taken = [s.value for s in path if type(s.entry) is Input]
        if any([v.weak for v in taken]):
            self.state.next[key[0], NUMBERS] = True  # type: ignore[index]
            return
        entries = self._entries(taken, new)
        if entries is None:
            return
        writes, kept = self._writes(entries, out), self._casts(new)
        led = sum(bool(e.value.role) for e in entries)
        if writes is None or kept is None or len(trace.sources) != self.sources + led:
            return
        outs, wrap = [out], None
        if type(out) in (tuple, list):
            outs, wrap = list(out), type(out)
        elif isinstance(out, tuple) and hasattr(out, "_make"):
            outs, wrap = list(out), type(out)._make
        results = [self._result(x, new) for x in outs]
        if all(r is not None for r in results):
            effects = Effects(tuple(entries), tuple(writes), tuple(kept))
            asks = 0 < len(entries) == len(self.tensors) and not self.on_host
            asks = asks and not any(e.value.requires_grad for e in entries)
            self.state.next[key] = KeptCall(state, effects, results, wrap, asks)  # type: ignore[arg-type]
            for s in path:
                _note_numbers(s, self.state, key)

    def _entries(self, arrays: list[Value], new: set[Value]) -> list[Entry] | None:
        """Return which tensors entered as which values; None if anything else entered."""
        if len(arrays) != len(self.trace.arrays) - self.inputs:
            return None
        entered = self.trace.entered
        found: dict[Value, Entry] = {}
        for i, (t, before) in enumerate(zip(self.tensors, self.values, strict=True)):
            if before.index >= 0:
                continue
            entry = entered.get(id(t))
            if entry is None or entry[1] not in new:  # its data may have been looked at
                return None
            if not self.shared[i]:
                found[entry[1]] = Entry(i, entry[1])
                continue
            cell = None if t._store is None else t._store.cell
            of_cell = entered.get(id(cell))
            if of_cell is None or t._v is not entry[1]:
                return None
            found[of_cell[1]] = Entry(i, entry[1], of_cell[1], t._lens)
        if len(found) != len(arrays) or not all(v in found for v in arrays):
            return None
        return [found[v] for v in arrays]

    def _writes(self, entries: list[Entry], out: Any) -> list[tuple[int, Value, int]] | None:
        """Return which tensors were written to; None if that was not as plain as it can be."""
        entered = {e.place: e.value for e in entries}
        found = []
        for i, t in enumerate(self.tensors):
            before = entered.get(i, self.values[i])
            if t._v is before:
                if _counted(t) != self.counts[i]:
                    return None
                continue
            plain = not (self.shared[i] or t._shares or t._retains or t._hooks)
            if not plain or t._stale is not None or t._v.index < 0 or t._v.inference:
                return None
            if before.role not in (NOWHERE, NODE) or t._v in self.trace.sources:
                return None
            found.append((i, t._v, _counted(t) - self.counts[i]))
        notes = self.trace.memory.undo[self.undo :]
        if any(type(n) is not Write for n in notes):
            return None
        known = {*map(id, self.tensors)}
        outs = {*map(id, out if isinstance(out, (tuple, list)) else [out])}
        written = [id(t) for n in notes if (t := n.tensor()) is not None]
        if not known.union(outs).issuperset(written):
            return None
        return found if len(found) == len([t for t in written if t in known]) else None

    def _casts(self, new: set[Value]) -> list[tuple[int, Any, Value]] | None:
        """Return which leaves autocast has cast; None if not only the call's own."""
        found = []
        places = {id(t): i for i, t in enumerate(self.tensors)}
        for key in casts.kept.keys() - self.cast if self.cast is not None else ():
            _, made = casts.kept[key]
            if key[0] not in places or key[2] is not self.state.mode.grad:
                return None
            if made._v not in new or made._base_ is not None or _viewers_of(made):
                return None
            found.append((places[key[0]], key[1], made._v))
        return found

    def _result(self, out: Any, new: set[Value]) -> Result | None:
        """Return how a result is made again; None if that cannot be told."""
        if type(out) in _CONSTANT:
            return Constant(out)
        for i, t in enumerate(self.tensors):
            if t is out:
                return Given(i)
        if type(out) is not inputs._tensor_class or out._trace is not self.trace:
            return None
        if out._v not in new:
            return None
        fields = out.__dict__.keys() - _FRESH
        if not fields:
            return Fresh(out._v)
        if fields == {"_vc"} and not out._v.inference:
            return Fresh(out._v, out._vc[0])
        return self._view(out, new)

    def _view(self, out: Any, new: set[Value]) -> View | FreshView | None:
        way = _way(out)
        if way is None or out._stale is not None or _holds_tensors(way[1]):
            return None
        root, lens, read = way
        if root._v in new and not any(root is t for t in self.tensors):
            if not _is_seen_alone(out, root):
                return None
            return FreshView(out._v, root._v, _pieces(lens, read), out._creation)
        for i, (t, own) in enumerate(zip(self.tensors, self.ways, strict=True)):
            if own is None and t is not root or own is not None and own[0] is not root:
                continue
            above = () if own is None else _pieces(own[1], own[2])
            n, seen = len(above), len(read_of(above))
            if lens[:n] == above and read[:seen] == read_of(above):
                step = _pieces(lens[n:], read[seen:])
                whole = _pieces(lens, read)
                return View(out._v, i, above, whole, step, out._creation, t._creation)
        return None


def _note_numbers(step: State, before: State, key: Any) -> None:
    """Note that a call takes a step: once the step's numbers change, the call is made anew."""
    parent = step.parent
    if parent is not None and parent.numbers is not None:
        for baked, calls in parent.numbers.values():
            if parent.next.get(baked) is step:
                calls.append((before, key))


def is_plain(trace: Trace, tensors: list[Any]) -> bool:
    """Tell whether each tensor is in the trace, or at rest in a way that its key tells."""
    resting = set()
    for t in tensors:
        if t._v.index >= 0:
            if t._trace is not trace or t._stale is not None:
                return False
            continue
        if id(t) in resting or not (rests(t, trace) or _rests_in_storage(t, trace)):
            return False
        resting.add(id(t))
    return True


def _rests_in_storage(t: Any, trace: Trace) -> bool:
    """Tell whether `t`, which has no history, views a storage at rest."""
    if t._trace is not None or not t._shares or t._v.role or t._stale is not None:
        return False
    if t._viewed is not None or t._viewers is not None or id(t) in trace.entered:
        return False
    store = t._store
    if store is None or not t._lens or t._vc is not store.vc or _holds_tensors(t._lens):
        return False
    return rests(store.cell, trace)


def _pieces(lens: Lens, read: Lens) -> Lens:
    return tuple(lens) if lens == read else Pieces.of(lens, read)


def _holds_tensors(lens: Lens) -> bool:
    return next(tensors_in([step[1:] for step in lens]), None) is not None


def _is_seen_alone(out: Any, root: Any) -> bool:
    """Tell whether `out` is the only one that views `root`, which nothing else was done to."""
    if root._array is not None or root._base_ is not None or _counted(root):
        return False
    seen = _viewers_of(root)
    return len(seen) == 1 and seen[0] is out


def _viewers_of(root: Any) -> list[Any]:
    """List the tensors that share the memory of `root` and are alive."""
    if root._viewers is not None:
        return [x for viewer in root._viewers if (x := viewer()) is not None]
    if not root._shares or root._store is None:
        return []
    cell = root._store.cell
    members = [m() for m in root._store.members]
    return [x for x in members if x is not None and x is not root and x is not cell]


def _counted(t: Any) -> int:
    counter = t.__dict__.get("_vc")
    return 0 if counter is None else int(counter[0])


def _notes(trace: Trace) -> Any:
    graph = trace.graph
    return graph.hooked, len(graph.retains), graph.frames, graph.duals, len(graph.detached)


def _way(t: Any) -> Any:
    """Return the base of a view, how autograd sees the view from it, and how it is read.

    None for what is no view, and where there is more to it.
    """
    viewed = t._viewed
    if viewed is not None:
        root, lens = viewed
        return None if lens is None else (root, lens, read_of(lens))
    if t._viewers is not None or t._base_ is None or t._dual_root is not None:
        return None
    base = t._base_
    if type(t._blens) is not tuple or t._store is None or base._store is not t._store:
        return None
    if base._lens or t._vc is not base._vc:
        return None
    return base, t._blens, t._lens
