"""A recorded call as one step of the running program: its results have a graph, as if recorded."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

from .._core.trie import Value, local
from .._dispatch.macro_steps import MacroStep, is_uncut
from .._storage.write import bump, rebind
from .._tracing.inputs import make
from .._tracing.loop_cuts import over_budget
from .._tracing.undo import Draw
from .capture import Before
from .conditions import MISS, Conditions
from .python_state import NotReplayable, PythonState
from .recorded import Recorded
from .results import rebuild

_value = attrgetter("_v")


class _Effects(NamedTuple):
    """Values after the call, and the constants that enter in it.

    Attributes:
      written, drawn: values of the tensors that it wrote to, and of generators' states.
      result: as `rebuild` takes it, with values of the tensors that it made.
    """

    written: list[Value]
    drawn: list[Value]
    result: list[Any]
    constants: list[Any]


class Span:
    """The replay of a call that goes on as part of the running program.

    Args:
      recorded: the call, before its program ran.
      before: what there was then.
      python: what its Python reads.

    Raises:
      NotReplayable: it has effects that are no part of a program that goes on.
    """

    def __init__(self, recorded: Recorded, before: Before, python: PythonState) -> None:
        if recorded.numbers or recorded.grads:
            raise NotReplayable("it returns a tensor with a history that it has walked in part")
        self._conditions = Conditions(recorded, python)
        self._held = before.held
        self._written = [(w.source, w.versions) for w in recorded.written]
        self._drawn = [(d.generator, d.keys) for d in recorded.drawn]
        self._kinds, self._spec = list(map(type, recorded.result)), recorded.spec

    def continues(self, recorded: Recorded) -> bool:
        """Tell whether a call was the same as this, perhaps somewhere else in a program."""
        return self._conditions.hold() and list(map(type, recorded.result)) == self._kinds

    def remember(self, recorded: Recorded, before: Before) -> None:
        """Remember the step that a call was: from where it began, on what its operands were."""
        drawn = {id(d.generator) for d in recorded.drawn}
        states = [state for g, state, _ in before.generators if id(g) in drawn]
        operands = [*before.held, *before.arguments, *states]
        place = {id(t): k for k, t in reversed(list(enumerate(operands)))}
        inputs: list[tuple[int, Value | None]] = []
        constants: list[Any] = []
        pairs = list(zip(recorded.inputs, recorded.sources, strict=True))
        generators = {id(g): state for g, state, _ in before.generators}
        for value, source in pairs[recorded.first :]:
            if source.kind == "constant":
                inputs.append((len(operands) + len(constants), None))
                constants.append(source.what)
                continue
            if source.kind == "generator":
                t = generators[id(source.what)]
            else:
                t = source.tensor(before.arguments)
            if id(t) not in place:
                raise NotReplayable("it takes a tensor that it does not find in Python")
            inputs.append((place[id(t)], value))
        result = [
            x._v if type(found) is int else found
            for found, x in zip(recorded.result, recorded.leaves, strict=True)
        ]
        effects = _Effects(
            [w.source.tensor(before.arguments)._v for w in recorded.written],
            [d.generator._held._v for d in recorded.drawn],
            result,
            constants,
        )
        nbytes = sum(value.nbytes for _, value in inputs if value is not None)
        key = (self, *[before.values[id(t)] for t in operands])
        recorded.start.next[key] = MacroStep(recorded.state, tuple(inputs), nbytes, effects)

    def run(self, arguments: list[Any]) -> Any:
        """Take the call as one step; `MISS` if it is not known here, or something has changed."""
        if not self._conditions.hold():
            return MISS
        trace = local.trace
        operands = [*self._held, *arguments, *[g.free_state() for g, _ in self._drawn]]
        step = trace.state.next.get((self, *map(_value, operands)))
        if step is None or not is_uncut(step.state) or over_budget(trace):
            return MISS
        effects: _Effects = step.effects
        targets = [source.tensor(arguments) for source, _ in self._written]
        if any(t._shares and t._store is not None for t in targets):
            return MISS
        if not step.take(trace, [*operands, *effects.constants]):
            return MISS
        for t, value, (_, versions) in zip(targets, effects.written, self._written, strict=True):
            bump(t, versions)
            rebind(t, value)
        for (generator, keys), value in zip(self._drawn, effects.drawn, strict=True):
            state = generator._state
            if state._array is not None:
                trace.memory.undo.append(Draw(generator, state._v, generator._drawn))
            generator._drawn += keys
            generator._state = make(value, trace)
        return rebuild(effects.result, self._spec, arguments, lambda value: make(value, trace))
