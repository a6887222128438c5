"""Recorded calls: the inputs of their programs, and what they left behind.

Each input of its program has a source, which a replay reads anew, and each value that outlives the
call an effect, which a replay repeats.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._core.handle import Handle
from .._core.tree.trees import tree_flatten
from .._core.trie import NODE, Trace
from .._tracing.inputs import list_inputs
from .._tracing.leaf_tuples import mark_all_entered
from .._tracing.undo import Update, Write
from .capture import Before, Capture, Numbers, Source
from .python_state import NotReplayable, are_same
from .shared_memory import is_shared, memory_of, sharers_of


class Written(NamedTuple):
    """A tensor that was there before the call and that has another value after it.

    Attributes:
      number: of the value.
      versions: by how many its counter went on.
    """

    source: Source
    number: int
    versions: int


class NewGrad(NamedTuple):
    """A gradient that the call made, or took away: then `number` is -1."""

    leaf: Any
    number: int


class Drawn(NamedTuple):
    """A generator that the call drew so many keys from."""

    generator: Any
    number: int
    keys: int


class Recorded:
    """One call, before its program has run.

    Attributes:
      start, state: where in the trie it began and ended.
      inputs, sources: values of all inputs of the trace, and where each comes from.
      first: how many inputs the trace had before the call.
      numbers: that optimizers' steps entered.
      grads_before: leaves, and whether they had a gradient.
      written, grads, drawn: its effects.
      result: for each leaf of what it returned the number of its value or its source; the leaf
        itself in a tuple if it is no tensor.
      live: whether a result has a graph that nobody has walked.
      leaves, spec: of what it returned.

    Raises:
      NotReplayable: it left something behind that only its Python can make.
    """

    def __init__(self, trace: Trace, capture: Capture, before: Before, result: Any) -> None:
        self._trace, self._before = trace, before
        self.start, self.state, self.first = before.state, trace.state, before.inputs
        self.numbers: list[Numbers] = capture.numbers
        mark_all_entered(trace)
        self.inputs = list_inputs(trace)
        self.grads_before = [(leaf, old is not None) for leaf, old in before.grads]
        self._places = {value.index: k for k, value in enumerate(self.inputs)}
        self._entered = self._find_entered()
        self.sources = list(self._find_sources())
        self._known = {id(t): Source("held", t) for t in self._entered.values()} | before.sources
        self.drawn = [
            Drawn(g, g._held._v.index, g._drawn - drawn)
            for g, _, drawn in before.generators
            if g._drawn != drawn
        ]
        self.written = list(self._find_written())
        self.grads = list(self._find_grads())
        self._take_result(result)
        self._refuse_shared_memory()
        self._refuse_strangers()

    # ------------------------------------------------------------ inputs

    def _find_entered(self) -> dict[int, Any]:
        """Find the tensors that entered, by the places of their inputs.

        Of those that enter by the hundred the trace has no list: they still hold the input's value,
        or a note of their first write, or of where gradients go, tells what they held.
        """
        trace, entered = self._trace, dict[int, Any]()

        def add(t: Any, value: Any) -> None:
            if isinstance(t, Handle) and value.index in self._places:
                place, known = self._places[value.index], self._before.sources
                if place not in entered or id(entered[place]) not in known:
                    entered[place] = t

        for holder, value, _ in trace.entered.values():
            add(holder(), value)
        for note in trace.memory.undo:
            if type(note) is Update:
                for p, value in zip(note.params, note.values, strict=True):
                    add(p, value)
                for k, t in enumerate(note.held, note.first):
                    entered.setdefault(k, t)
            elif type(note) is Write and note.array is not None:
                add(note.tensor(), note.value)
        for value, t in trace.sources.items():
            add(t, value)
        for t in trace.living():
            if t._array is not None:
                add(t, t._v)
        return entered

    def _find_sources(self) -> Iterator[Source]:
        explained = self._places_of_numbers()
        for k in range(len(self.inputs)):
            t = self._entered.get(k)
            if k in explained:
                yield Source("numbers", explained[k])
            elif t is None:
                yield Source("constant", self._trace.arrays[k])
            else:
                yield self._before.sources.get(id(t)) or Source("held", t)

    def _places_of_numbers(self) -> dict[int, tuple[int, int]]:
        """Map inputs that are numbers of optimizers' steps to `(step, which of its numbers)`."""
        arrays, found, start = self._trace.arrays, dict[int, tuple[int, int]](), self.first
        for step, numbers in enumerate(self.numbers):
            for at in range(start, len(arrays) - len(numbers.entered) + 1):
                if all(map(numbers.is_at, range(len(numbers.entered)), arrays[at:])):
                    found.update((at + k, (step, k)) for k in range(len(numbers.entered)))
                    start = at + len(numbers.entered)
                    break
        return found

    # ------------------------------------------------------------ effects

    def _find_written(self) -> Iterator[Written]:
        before = self._before
        states = {id(g._held) for g, _, _ in before.generators}
        for t in {id(t): t for t in self._trace.living()}.values():  # one may be there twice
            source = self._known.get(id(t))
            if source is None or id(t) in states or t._array is not None:
                continue
            is_read = t._lens and t._store.cell._v.index in self._places  # from its storage
            if is_read or t._v.index in self._places or before.values.get(id(t)) is t._v:
                continue
            if is_shared(t):
                raise NotReplayable("it writes to a tensor that shares memory with another")
            if source.kind == "argument" and source.what in before.stand_ins:
                raise NotReplayable("it writes to an argument that is a view")
            if t._v.role == NODE:
                raise NotReplayable("it leaves a tensor from outside with a history")
            vc = t.__dict__.get("_vc")
            count = 0 if vc is None else vc[0] - before.versions.get(id(t), 0)
            yield Written(source, t._v.index, count)

    def _find_grads(self) -> Iterator[NewGrad]:
        for leaf, old in self._before.grads:
            new = leaf._grad
            if new is old:
                continue
            if new is None:
                yield NewGrad(leaf, -1)
            elif new._trace is not self._trace or new._v.role == NODE or new._v.index < 0:
                raise NotReplayable("it sets a gradient that its program did not compute")
            else:
                yield NewGrad(leaf, new._v.index)

    def _take_result(self, result: Any) -> None:
        self.leaves, self.spec = tree_flatten(result)
        self.result: list[Any] = []
        self.live = False
        freed = self._trace.graph.freed
        for x in self.leaves:
            if not isinstance(x, Handle):
                self.result.append((x,))
            elif id(x) in self._known:
                self.result.append(self._known[id(x)])
            elif x._trace is self._trace and x._v.index >= 0:
                self.live |= x._v.role == NODE and x._v.edge.state not in freed
                self.result.append(x._v.index)
            else:
                raise NotReplayable("it returns a tensor that its program did not compute")

    @property
    def tensors(self) -> list[Any]:
        """The tensors among what it returned."""
        return [x for x in self.leaves if isinstance(x, Handle)]

    def _refuse_shared_memory(self) -> None:
        distinct = {id(x): x for x in self.tensors}
        memories = list(map(memory_of, distinct.values()))
        if len(set(memories)) < len(memories):
            raise NotReplayable("it returns tensors that share memory")
        for t in self._entered.values():
            if id(t) not in distinct and memory_of(t) in memories:
                raise NotReplayable("it returns a tensor that shares memory with one from outside")

    def _refuse_strangers(self) -> None:
        """Refuse a call that leaves a tensor where no replay can put one."""
        known = {id(x) for x in self.tensors} | self._known.keys() | self._before.values.keys()
        known |= {id(leaf._grad) for leaf, _ in self._before.grads}
        known |= {id(g._held) for g, _, _ in self._before.generators}
        living = {id(t): t for t in self._trace.living()}
        mine = [*self.tensors, *[t for t in living.values() if id(t) in known]]
        known |= {id(x) for t in mine for x in sharers_of(t)}
        del living, mine
        if self._strangers(known):
            gc.collect()
        for t in self._strangers(known):
            where = getattr(t._v.state, "where", None)
            at = f" at {where[0]}:{where[1]}" if where else ""
            raise NotReplayable(f"a tensor that it made{at} is held after the call")

    def _strangers(self, known: Any) -> list[Any]:
        return [
            t for t in self._trace.living()
            if id(t) not in known and t._array is None and t._v.index not in self._places
        ]  # fmt: skip

    # ------------------------------------------------------------ two recordings

    def release(self) -> None:
        """Drop the tensors that the call used and made."""
        del self.leaves, self._entered, self._known, self._trace, self._before

    def difference(self, other: Recorded) -> str:
        """Return why another recording that ended in the same state is not the same; "" if it is.

        If two came to the same, that is what every call does.
        """
        pairs = list(zip(self.inputs, self.sources, other.sources, strict=True))
        for value, a, b in pairs[self.first :]:
            if not _are_alike(a, b):
                if value.weak:
                    return f"it computes with a number of Python that changes: {a.what}, {b.what}"
                return "it takes other tensors at each call, or data that it makes in Python"
        if self.spec != other.spec or not all(map(_return_same, self.result, other.result)):
            return "it returns something of Python that changes"
        return "" if self._key() == other._key() else "it writes to other tensors at each call"

    def _key(self) -> Any:
        """Return what must be equal in two recordings of the same; tensors count by identity."""
        return (
            [(_name(w.source), *w[1:]) for w in self.written],
            [(id(g.leaf), g.number) for g in self.grads],
            [(id(d.generator), *d[1:]) for d in self.drawn],
            [_name(x) if type(x) is Source else x for x in self.result if type(x) is not tuple],
            [step.op for step in self.numbers],
        )


def _name(source: Source) -> Any:
    what = source.what
    return source.kind, what if type(what) in (int, tuple) else id(what)


def _return_same(a: Any, b: Any) -> bool:
    """Tell whether two leaves of results agree, as far as they are no tensors."""
    return type(a) is type(b) and (type(a) is not tuple or are_same(a[0], b[0]))


def _are_alike(a: Source, b: Source) -> bool:
    if a.kind != "constant" or b.kind != "constant":
        return _name(a) == _name(b)
    return a.what is b.what or np.array_equal(np.asarray(a.what), np.asarray(b.what))
