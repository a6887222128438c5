"""A recorded call run again: from the arguments to the executable, and back into tensors."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

from jax import Array

from leafax.functional.execution.plan import Plan, plan_for

from .._core.faults import Pending
from .._core.handle import Handle
from .._core.host_transfer import entering
from .._core.locks import sharing
from .._core.trie import local
from .._runtime.cut import cut, note_run
from .._runtime.observation import observe
from .._runtime.recipes import MOST_IF_NOBODY, Recipe, most_held
from .._runtime.turns import Arranged
from .._storage.shared_storage import unshare
from .._storage.write import bump
from .._tracing import inputs
from .._tracing.loop_cuts import BUDGET
from .capture import COMPILE, Source
from .conditions import MISS, Conditions
from .python_state import PythonState
from .recorded import Recorded
from .results import rebuild

_value, _array, _shares = attrgetter("_v"), attrgetter("_array"), attrgetter("_shares")

#: What enters a program as it is: Python's numbers, and the classes that implement JAX's arrays,
#: which are no part of its API and so are put here as they are met.
_on_device: set[type] = {float, int}


class _Fixed(Handle):
    """An input that no tensor holds: a constant, or the place of a number."""

    def __init__(self, array: Any, kind: Any) -> None:
        self._array, self._v, self._trace = array, kind, None


class Made(NamedTuple):
    """A tensor that each replay makes anew.

    Attributes:
      place: among the program's outputs.
      rest: its value at rest.
      node, out: its place in a graph that was walked already.
    """

    place: int
    rest: Any
    node: Any
    out: int

    def make(self, cls: type, outputs: Any) -> Any:
        t: Any = object.__new__(cls)
        t._v, t._trace, t._array = self.rest, None, outputs[self.place]
        if self.node is not None:
            t._node, t._out = self.node, self.out
        return t


class Replay:
    """The replay of one call whose results are at rest when it returns.

    Args:
      recorded: the call, after its program ran.
      recipe: of its program.
      python: what its Python reads.
      arguments: the tensors among the arguments of that call.

    Attributes:
      python, recipe: as given.
      plan: that runs it.
      sources: one an input of the program.
      written, written_elsewhere: tensors or sources, with the place of the output, the value at
        rest, and how many writes the version counter sees.
      grads, drawn: leaves and generators, with what each replay makes for them.
      result: how to make each leaf of what the call returns, where it is, or it in a tuple.
      spec: the tree of these.
    """

    def __init__(
        self, recorded: Recorded, recipe: Recipe, python: PythonState, arguments: list[Any]
    ) -> None:
        self.recipe, self.python = recipe, python
        self._conditions = Conditions(recorded, python)
        plan = recipe.plan
        self.plan = plan.natural() if isinstance(plan, Arranged) else plan
        self._undonated: Plan | None = None
        if recipe.sizes[0] <= BUDGET:  # else it runs in pieces, as it would without `compile`
            self.plan.run_whole()
        places = recipe.places
        self._take_sources(recorded)
        self.written: list[tuple[Any, int, Any, int]] = []
        self.written_elsewhere: list[tuple[Source, int, Any, int]] = []
        for w in recorded.written:
            t = w.source.tensor(arguments)
            told = places[w.number], t._v, w.versions
            if w.source.kind == "held":
                self.written.append((t, *told))
            else:
                self.written_elsewhere.append((w.source, *told))
        self._targets = [t for t, *_ in self.written]
        self.grads = [
            (g.leaf, None if g.number < 0 else _made(g.leaf._grad, places[g.number]))
            for g in recorded.grads
        ]
        self.drawn = [
            (d.generator, _made(d.generator._held, places[d.number]), d.keys)
            for d in recorded.drawn
        ]
        self._take_result(recorded, places)

    def _take_sources(self, recorded: Recorded) -> None:
        self.sources = recorded.sources
        self._kinds = [value.resting for value in recorded.inputs]
        self._handles: list[Any] = []
        self._others: list[tuple[int, Source]] = []
        self._numbers: list[tuple[int, int, int]] = []
        self._steps = recorded.numbers
        for k, (source, kind) in enumerate(zip(recorded.sources, self._kinds, strict=True)):
            held = source.kind == "held"
            array = source.what if source.kind == "constant" else None
            self._handles.append(source.what if held else _Fixed(array, kind))
            if source.kind == "numbers":
                self._numbers.append((k, *source.what))
            elif source.kind not in ("held", "constant"):
                self._others.append((k, source))

    def _take_result(self, recorded: Recorded, places: dict[int, int]) -> None:
        self.spec = recorded.spec
        self.result: list[Any] = []
        for found, x in zip(recorded.result, recorded.leaves, strict=True):
            self.result.append(_made(x, places[found]) if type(found) is int else found)

    # ------------------------------------------------------------ a call

    def run(self, arguments: list[Any], donate: bool = True) -> Any:
        """Run the call for these tensors.

        Args:
          donate: outputs may be written over inputs that nobody else holds.

        Returns:
          what it returns, or `MISS` if something is not as it was.
        """
        arrays = self.inputs(arguments)
        return MISS if arrays is None else self._dispatch(arrays, arguments, donate)

    def inputs(self, arguments: list[Any]) -> list[Any] | None:
        """Return what enters the program now; None if something is not as it was."""
        if not self._conditions.hold():
            return None
        handles = self._handles.copy()
        for k, source in self._others:
            t = source.tensor(arguments)
            if t is None:
                return None
            handles[k] = t
        if list(map(_value, handles)) != self._kinds and not self._settle(handles):
            return None
        if any(map(_shares, self._targets)):
            for t in self._targets:
                if t._shares and t._store is not None:
                    unshare(t)
                    if t._shares:
                        return None
        arrays = list(map(_array, handles))
        if self._numbers and not self._put_numbers(arrays):
            return None
        if not set(map(type, arrays)) <= _on_device:
            _complete(arrays, handles)
        return arrays

    def _settle(self, handles: list[Any]) -> bool:
        """Run what is pending in the thread; tell whether all is as it was then."""
        if any(t._v.index >= 0 for t in handles):
            cut(COMPILE)
        return list(map(_value, handles)) == self._kinds

    def _put_numbers(self, arrays: list[Any]) -> bool:
        """Put the numbers of optimizers' steps in; tell whether they enter as they did."""
        given = []
        for step in self._steps:
            op, numbers = step.now()
            if op is not step.op or len(numbers) != len(step.entered):
                return False
            given.append(numbers)
        for k, step_number, place in self._numbers:
            arrays[k] = given[step_number][place]
        return True

    def _dispatch(self, arrays: list[Any], arguments: list[Any], donate: bool) -> Any:
        plan = self.plan
        # Two hold what may be written over: its tensor and `arrays`.
        if plan.donate and not (donate and most_held(arrays, plan.donate) <= MOST_IF_NOBODY + 1):
            plan = self._without_donation()
        before = [0 if (vc := t._vc) is None else vc[0] for t in self._targets]
        landed: list[Any] = []
        try:
            outcome = plan.run(arrays, False, False, landed)
            return self._finish(plan, outcome, arguments, before)
        except BaseException:
            if landed:  # it has happened, so it does whole
                self._finish(plan, plan.outcome(landed[0], "cached", 0.0), arguments, before)
            raise

    def _without_donation(self) -> Plan:
        if self._undonated is None:
            self._undonated = plan_for(self.plan.program, (), (), self.plan.guards)
            self._undonated.run_whole()
        return self._undonated

    def _finish(self, plan: Plan, outcome: Any, arguments: list[Any], before: list[int]) -> Any:
        """Give the tensors what the program computed, and return what the call does.

        Args:
          before: versions of the tensors that are always the same ones.
        """
        outputs, cls = outcome.outputs, inputs._tensor_class
        with sharing:
            for (t, place, rest, versions), count in zip(self.written, before, strict=True):
                t._v, t._array = rest, outputs[place]
                if t._vc is None:
                    t._vc = [versions]
                else:
                    t._vc[0] = count + versions
            for source, place, rest, versions in self.written_elsewhere:
                t = source.tensor(arguments)
                t._v, t._array = rest, outputs[place]
                bump(t, versions)
            for leaf, made in self.grads:
                leaf._grad = None if made is None else made.make(cls, outputs)
            for generator, made, keys in self.drawn:
                generator._state = made.make(cls, outputs)
                generator._drawn += keys
        if outcome.faults is not None:
            local.faults.append(Pending(outcome.faults, plan.side.faults))
        note_run(self.recipe, outcome, COMPILE, None, plan)
        return rebuild(self.result, self.spec, arguments, lambda made: made.make(cls, outputs))


def _complete(arrays: list[Any], handles: list[Any]) -> None:
    """Put in what enters the program for tensors that hold no array of JAX."""
    for k, t in enumerate(handles):
        kind = type(arrays[k])
        if issubclass(kind, Array):
            _on_device.add(kind)
        elif arrays[k] is None:
            arrays[k] = observe(t, COMPILE)
        elif type(t) is not _Fixed and kind not in (int, float):
            arrays[k] = entering(t)


def _made(t: Any, place: int) -> Made:
    return Made(place, t._v, t._node, t._out)
