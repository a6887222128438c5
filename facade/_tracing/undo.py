"""The way back: what tensors and generators held before the running program wrote to them.

Values are immutable, so a write only gives a handle another value. The trace notes the one that it
had before; should the program fail, or the user interrupt it, the handle gets that back. The same
notes tell which outputs of a program write over which of its inputs.

Notes hold numbers of inputs and no arrays where they can: an array that somebody holds cannot be
donated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

from .._core.trie import Trace, Value
from .bundles import Bundle
from .inputs import list_inputs


class Write(NamedTuple):
    """One tensor before it was written to.

    Attributes:
      tensor: a weak reference to it.
      value: its value then.
      array: the array that it held if it was not in the trace; True if it was, as an input, or
        its value in the trace, if it was one but not marked so; None if its value was still to
        be computed.
      store: what it shared memory by.
    """

    tensor: Any
    value: Value
    array: Any
    store: Any

    def place(self, places: dict[int, int]) -> int | None:
        """Return the place of the noted array among the trace's inputs; None if it was none.

        Args:
          places: of the values that are inputs, by their numbers.
        """
        if self.array is True:
            return places.get(self.value.index)
        return places.get(self.array.index) if type(self.array) is Value else None


class Update(NamedTuple):
    """Parameters and states before an update that was replayed, see `optim._base.update`.

    Attributes:
      params, held: the tensors, or a bundle that stands for the latter.
      values: of the parameters then.
      first: which input the first of `held` is.
    """

    params: Sequence[Any]
    values: Sequence[Value]
    held: Sequence[Any] | Bundle
    first: int


class Draw(NamedTuple):
    """A generator before its first draw in the trace.

    Attributes:
      value: of its state, an input of the trace.
      drawn: how many keys it had given.
    """

    generator: Any
    value: Value
    drawn: int


def note_write(trace: Trace, t: Any, me: Any) -> None:
    """Note what a tensor holds before it is written to.

    Args:
      me: a weak reference to it.
    """
    value, array = t._v, t._array
    if array is not None:
        if value.index >= 0 and t._trace is trace:
            array = True
        else:
            entered = trace.entered.get(id(t)) if trace.bulk else None
            if entered is not None and entered[0]() is t and entered[2] == id(array):
                array = entered[1]
    trace.memory.undo.append(Write(me, value, array, t._store if t._shares else None))


def take_back(trace: Trace, arrays: Sequence[Any], since: int = 0) -> None:
    """Give tensors that the trace wrote to their values back, and generators their place.

    Args:
      arrays: one an `Input` of the trace.
      since: how many notes to leave alone.
    """
    places = {value.index: k for k, value in enumerate(list_inputs(trace))}
    for note in reversed(trace.memory.undo[since:]):
        if type(note) is Draw:
            if note.value.index in places:
                note.generator.return_to(arrays[places[note.value.index]], note.drawn)
        elif type(note) is Update:
            if len(arrays) < note.first + len(note.held):
                continue  # interrupted before anything was changed
            for p, value in zip(note.params, note.values, strict=True):
                _give_back(trace, p, value, places.get(value.index), arrays)
            if isinstance(note.held, Bundle):
                note.held.give_back(list(arrays[note.first : note.first + len(note.held)]))
            for k, t in enumerate(note.held, note.first):
                t._v, t._trace, t._array = t._v.resting, None, arrays[k]
        else:
            t, array, place = note.tensor(), note.array, note.place(places)
            if t is None:
                continue
            if t._shares and t._store is not None and t._store is not note.store:
                t._store.let_go(t)
            if array is None or array is True:
                _give_back(trace, t, note.value, place, arrays)
            else:
                array = array if place is None else arrays[place]
                t._v, t._trace, t._array, t._stale = note.value.resting, None, array, None
    del trace.memory.undo[since:]
    trace.memory.bundles = tuple([b for b in trace.memory.bundles if b.trace is trace])


def _give_back(
    trace: Trace, t: Any, value: Value, place: int | None, arrays: Sequence[Any]
) -> None:
    """Put a tensor back into the trace as it was.

    Args:
      place: the input that it entered as; None if its value was still to be computed.
    """
    array = None if place is None else arrays[place]
    t._v, t._trace, t._array, t._stale = value, trace, array, None
    if t._vc is not None:  # what was saved of it is right again
        t._vc[0] = trace.versions.get(value.storage, 0) + value.version
    if not any(r() is t for r in trace.refs):
        trace.refs.append(ref(t))


def values_before(trace: Trace, t: Any) -> list[tuple[Value, Any]]:
    """Return what a tensor held before each write of the trace to it, the latest first.

    Returns:
      values, with their arrays where these were known.
    """
    places = {value.index: k for k, value in enumerate(list_inputs(trace))}
    found = []
    for note in reversed(trace.memory.undo):
        if type(note) is Write and note.tensor() is t:
            place = note.place(places)
            array = None if note.array is True else note.array  # True is a mark, no array
            found.append((note.value, array if place is None else trace.arrays[place]))
    return found


def written_over(trace: Trace) -> dict[int, int]:
    """Map numbers of values that write over an input to the input's place.

    Values are those of tensors that are alive and were at rest when the program began.
    """
    inputs = list_inputs(trace)
    places = {value.index: k for k, value in enumerate(inputs)}
    found: dict[int, int] = {}

    def add(t: Any, place: int | None) -> None:
        if place is not None and t._array is None and t._v.index >= 0:
            note_value(t._v, place)

    def note_value(value: Value, place: int) -> None:
        given = inputs[place]
        same = given.shape == value.shape and given.dtype == value.dtype
        if same and value.index not in places:
            found.setdefault(value.index, place)

    for note in trace.memory.undo:
        if type(note) is Update:
            for p, before in zip(note.params, note.values, strict=True):
                add(p, places.get(before.index))
            if isinstance(note.held, Bundle) and note.held.tensors is None:
                for k, value in enumerate(note.held.kinds.values, note.first):
                    note_value(value, k)
            for k, t in enumerate(note.held, note.first):
                add(t, k)
        elif type(note) is Draw:
            add(note.generator._state, places.get(note.value.index))
        elif (t := note.tensor()) is not None:
            add(t, note.place(places))
    return found
