"""Values of a trace computed anew from its inputs, while the trace stays as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from leafax.functional.execution.plan import plan_for
from leafax.functional.program.program import Input, Node, Program
from leafax.functional.program.slices import PlacedEntry, needed_entries, renumber

from .._core.faults import Pending
from .._core.locks import sharing, wait_for
from .._core.run_log import Run, history
from .._core.trie import NODE, State, Trace, local
from .._storage.enter import enter
from .._tracing.infer import user_line
from .._tracing.jax_transforms import run_inside
from .._tracing.undo import values_before


class Peeked:
    """The part of a trace that other threads have asked for.

    Attributes:
      entries: its entries so far.
      state: the last state among them.
      known: arrays of values that were computed, by number.
    """

    __slots__ = ("entries", "state", "known", "inputs")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.entries: list[PlacedEntry] = []
        self.state: State | None = None
        self.inputs = 0
        self.known: dict[int, Any] = {}

    def follow(self, trace: Trace) -> None:
        """Add what was recorded since; the thread may be adding an input right now."""
        here = () if self.state is None else (self.state,)
        states = trace.state.since(*here)
        if states and states[0].parent is not self.state:  # also where steps have become one since
            self.begin()
        for s in states:
            array = None
            if isinstance(s.entry, Input):
                if self.inputs == len(trace.arrays):
                    return
                array = trace.arrays[self.inputs]
                self.inputs += 1
            if s.entry is not None:
                first = s.count - len(s.entry.avals)
                self.entries.append(PlacedEntry(s, first, s.entry, array))
            self.state = s


class Part(NamedTuple):
    """The part of a trace that computes a value.

    Attributes:
      program: returns the value, and what else is worth remembering.
      arrays: of its inputs.
      rest: numbers of what else it returns.
      known: remembers their arrays.
    """

    program: Program
    arrays: list[Any]
    rest: list[int]
    known: dict[int, Any]


def compute_elsewhere(t: Any) -> Any:
    """Compute a tensor that another thread has pending, without touching its trace.

    The values that it depends on are computed anew from that trace's inputs: they are
    immutable, so the other thread may go on. What of them may be needed again is remembered with
    the trace: of a thread that prepares data with a running mean, each batch takes one turn.

    Returns:
      its array; None if that thread has just written to its memory, from which it is to be read.
    """
    with sharing:
        wait_for(t)
        if t._array is not None:
            return t._array
        trace, value = t._trace, t._v
        if trace is None and t._shares:
            return None
        if trace.outcome.done:
            return salvage(t)
        part = _slice(trace, value.index)  # before that thread can run its program
    return _computed(trace, part)


def _computed(trace: Trace, part: Part) -> Any:
    """The array of a value of a trace, computed anew from the trace's inputs."""
    program, inputs, rest, known = part
    if trace.inside is not None and (traced := run_inside(program, inputs)) is not None:
        known.update(zip(rest, traced[1:], strict=True))
        return traced[0]
    plan = plan_for(program)
    outcome = plan.run(inputs)
    known.update(zip(rest, outcome.outputs[1:], strict=True))
    if trace is not local.trace:
        if outcome.faults is not None:  # that thread may raise them later, or never
            local.faults.append(Pending(outcome.faults, plan.side.faults))
        told = ("tensor of another thread", user_line(), len(plan.nodes), outcome.how)
        history.append(Run(*told, outcome.seconds, len(inputs), len(rest) + 1, 0, 0, outcome.why))
    return outcome.outputs[0]


def salvage(t: Any) -> Any:
    """Compute a tensor of a failed program, if that needs nothing that failed; return its array.

    Else the tensor holds what it held before it was written to.

    Raises:
      Exception: what the program raised.
    """
    trace = t._trace
    for value, array in [(t._v, None), *values_before(trace, t)]:
        try:
            if array is None:
                array = _computed(trace, _slice(trace, value.index))
        except Exception as error:
            if not isinstance(trace.outcome.failure, Exception):
                trace.outcome.failure = error  # it was only interrupted before
            continue
        with sharing:
            t._array, t._stale = array, None
            if value.role != NODE:
                t._v, t._trace = value.resting, None
        return array
    raise trace.outcome.failure.with_traceback(None)


def _slice(trace: Trace, index: int) -> Part:
    """Return the program of a value and of what else is worth computing on the way.

    That is what is still held, or used after the value. Whether the thread is a few turns ahead
    must not matter, for each other program is compiled.
    """
    with sharing:
        peeked = trace.outcome.peeked
        if peeked is None:
            peeked = trace.outcome.peeked = Peeked()
        peeked.follow(trace)
        known = peeked.known
        entries = [*needed_entries(reversed(peeked.entries), {index}, known)]
        held = _held(trace, peeked, index)
    nodes = [placed for placed in entries if isinstance(placed.entry, Node)]
    read = {v for placed in nodes for v in placed.entry.inputs}
    rest = [v for placed in nodes for v in placed.values if v in held and v in read and v != index]
    entries.reverse()
    arrays = [placed.array for placed in entries if isinstance(placed.entry, Input)]
    return Part(renumber(entries, (index, *rest)), arrays, rest, known)


def _held(trace: Trace, peeked: Peeked, index: int) -> set[int]:
    """Return the numbers of values that tensors hold, or that are used after a value."""
    held = {t._v.index for r in list(trace.refs) if (t := r()) is not None and t._trace is trace}
    for placed in reversed(peeked.entries):
        if placed.first <= index:
            break
        if isinstance(placed.entry, Node):
            held.update(placed.entry.inputs)
    return held


def compute(t: Any) -> Any:
    """Compute a tensor without cutting the program that it is pending in; return its array."""
    enter(t, local.trace)
    return compute_elsewhere(t)
