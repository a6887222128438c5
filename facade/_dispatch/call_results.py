"""Results of calls that are kept: how each is made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

from .._core.pieces import read_of
from .._core.trie import Trace, Value
from .._core.view_ops import Lens
from .._storage.pending_views import view_again
from .._storage.shared_storage import share
from .._storage.write import written_once
from .._tracing import inputs
from .._tracing.inputs import make


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
