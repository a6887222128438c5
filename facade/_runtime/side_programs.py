"""The value of a pending tensor without running the program that it is pending in."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from leafax.functional.execution.plan import plan_for
from leafax.functional.execution.single_ops import is_exact, on_host
from leafax.functional.lowering.lower import picked
from leafax.functional.program.program import Input, Node

from .._core.faults import Pending
from .._core.host_transfer import on_host as to_host
from .._core.host_transfer import raw
from .._core.locks import sharing, wait_for
from .._core.run_log import ON_HOST, Run, history
from .._core.trie import NODE, NOWHERE, State, Trace, Value, local
from .._storage.enter import enter
from .._storage.host_arrays import data_of
from .._tracing.draws import is_draw
from .._tracing.infer import user_line
from .._tracing.jax_transforms import run_inside
from .._tracing.preparations import has_graph
from .._tracing.undo import values_before

MOST = 8  # ops of what is looked at beside a program
FEW = 4096  # elements of what is at rest as soon as one is looked at


class Peeked:
    """The part of a trace that other threads have asked for.

    Attributes:
      steps: its entries so far: the number of the first value, the state, the array of an input.
      state: the last state among them.
      known: arrays of values that were computed, by number.
    """

    __slots__ = ("steps", "state", "known", "inputs")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.steps: list[tuple[int, State, Any]] = []
        self.state: State | None = None
        self.inputs = 0
        self.known: dict[int, Any] = {}

    def follow(self, trace: Trace) -> None:
        """Add what was recorded since; the thread may be adding an input right now."""
        states: list[State] = []
        state: State | None = trace.state
        while state is not self.state and state is not None:
            states.append(state)
            state = state.parent
        if state is None:  # also where steps have become one since
            self.begin()
        for s in reversed(states):
            array = None
            if isinstance(s.entry, Input):
                if self.inputs == len(trace.arrays):
                    return
                array = trace.arrays[self.inputs]
                self.inputs += 1
            if s.entry is not None:
                self.steps.append((s.count - len(s.entry.avals), s, array))
            self.state = s


def compute_elsewhere(t: Any) -> Any:
    """Compute a tensor that another thread has pending, without touching its trace.

    The values that it depends on are computed anew from that trace's inputs: they are
    immutable, so the other thread may go on. What of them may be needed again is remembered with
    the trace: of a thread that prepares data with a running mean, each batch takes one turn.
    """
    with sharing:
        wait_for(t)
        if t._array is not None:
            return t._array
        trace, value = t._trace, t._v
        if trace.outcome.done:
            return salvage(t)
    return _computed(trace, value)


def _computed(trace: Trace, value: Value) -> Any:
    """Compute the array of a trace's value anew from the trace's inputs."""
    with sharing:
        peeked = trace.outcome.peeked
        if peeked is None:
            peeked = trace.outcome.peeked = Peeked()
        peeked.follow(trace)
        known = peeked.known
        kept, inputs, rest = _part(trace, peeked, value.index)
    program = picked(kept, (value.index, *rest))
    if trace.inside is not None and (traced := run_inside(program, inputs)) is not None:
        known.update(zip(rest, traced[1:], strict=True))
        return traced[0]
    plan = plan_for(program)
    outcome = plan.run(inputs)
    known.update(zip(rest, outcome.outputs[1:], strict=True))
    if trace is not local.trace:
        if outcome.faults is not None:  # that thread may raise them later, or never
            local.faults.append(Pending(outcome.faults, plan.side.faults))
        told = ("tensor of another thread", user_line(), len(plan.nodes), *outcome[3:])
        history.append(Run(*told, inputs=len(inputs), outputs=len(rest) + 1, saved=0, donated=0))
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
                array = _computed(trace, value)
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


def _part(trace: Trace, peeked: Peeked, index: int) -> tuple[list[Any], list[Any], list[int]]:
    """Return the entries for `picked` and the input arrays that a value is computed from.

    Also the numbers of what is computed on the way and is still held, or used after it. Whether
    the thread is a few turns ahead must not matter, for each other program is compiled.
    """
    held = {t._v.index for r in list(trace.refs) if (t := r()) is not None and t._trace is trace}
    wanted, rest, found = {index}, [], []
    for first, s, array in reversed(peeked.steps):
        entry = s.entry
        mine = wanted.intersection(range(first, first + len(entry.avals)))
        if not mine:
            if first > index and isinstance(entry, Node):
                held.update(entry.inputs)
            if not wanted:
                break
            continue
        wanted -= mine
        if mine <= peeked.known.keys():
            for v in sorted(mine, reverse=True):
                found.append(((None, v, Input(entry.avals[v - first])), peeked.known[v]))
            continue
        found.append(((s, first, entry), array))
        if isinstance(entry, Node):
            wanted.update(entry.inputs)
            rest += [v for v in sorted(mine & held) if v != index]
    found.reverse()
    inputs = [array for (_, _, entry), array in found if isinstance(entry, Input)]
    return [entry for entry, _ in found], inputs, rest


def compute(t: Any) -> Any:
    """Compute a tensor without cutting the program that it is pending in; return its array."""
    enter(t, local.trace)
    return compute_elsewhere(t)


def evaluate_beside(t: Any, reason: str) -> Any:
    """Compute a tensor that follows from data at rest by a few ops; return its array.

    To look at a token, a label or a length while a graph is recorded cuts nothing: what is looked
    at is computed beside the program, which goes on. It must be the same to the last bit there.

    Args:
      reason: why it is looked at, for `explain()`.

    Returns:
      None where the program has no graph that a cut would divide, or where it takes more.
    """
    trace, value = t._trace, t._v
    if value.index < 0 or value.role != NOWHERE or value.requires_grad or t._stale is not None:
        return None
    if not has_graph(trace.state):
        return None
    if reason in ON_HOST and value.dtype.kind in "iu":
        root = t if t._viewed is None else t._viewed[0]
        if root._v.numel <= FEW and settle_early(t, reason):
            return data_of(t)
    return _beside(trace, value.index, reason)


def settle_early(t: Any, reason: str) -> bool:
    """Put a value at rest that nothing was computed from yet, as if a cut had been there.

    Also what it is a view of. A batch that is drawn between forward and backward is looked at
    number by number, and what is gathered by it is no part of the program.

    Returns:
      whether that could be.
    """
    trace, root = t._trace, t
    if t._shares:
        if t._viewed is None or t._viewed[1] is None:
            return False
        root = t._viewed[0]
    value = root._v
    if root._trace is not trace or value.index < 0 or root._array is not None:
        return False
    if value.role != NOWHERE or value.requires_grad or t._stale is not None or not _is_last(value):
        return False
    array = _beside(trace, value.index, reason)
    if array is None or not on_host():
        return False
    root._array = np.array(to_host(array))
    for x in (root, t):
        x._v, x._trace = x._v.resting, None
    return True


def _is_last(value: Any) -> bool:
    """Return whether only views were recorded since this value."""
    state: Any = local.trace.state
    while state is not value.state:
        if isinstance(state.entry, Node) and not getattr(state.entry.call.op, "view", False):
            return False
        state = state.parent
        if state is None:
            return False
    return True


def _beside(trace: Trace, index: int, reason: str) -> Any:
    """Compute a value beside the program; None if that takes more than little."""
    glanced = trace.outcome.glanced
    if glanced is None:
        glanced = trace.outcome.glanced = {}
    elif (seen := glanced.get(index)) is not None:
        return _as_read(seen, reason)
    needed = _needed(trace, index)
    if needed is None:
        return None
    arrays = [array for _, entry, array in needed if isinstance(entry, Input)]
    # Of a sentence that is taken apart all tokens will be looked at.
    first, entry, _ = needed[-1]
    asked = [*range(first, first + len(entry.avals))]
    # The next draw begins where this one has left the generator.
    asked += [first + 1 for first, entry, _ in needed[:-1] if is_draw(entry)]
    program = picked([(first, first, entry) for first, entry, _ in needed], tuple(asked))
    outcome = plan_for(program).run(arrays, host=True)
    if outcome.faults is not None and any(raw(outcome.faults)):
        return None  # it raises in the program, once
    glanced.update(zip(asked, outcome.outputs, strict=True))
    nodes = len(needed) - len(arrays)
    told = (f"{reason} of data", user_line(), nodes, outcome.how, outcome.seconds)
    history.append(Run(*told, inputs=len(arrays), outputs=len(asked), saved=0, donated=0))
    return _as_read(glanced[index], reason)


def _as_read(array: Any, reason: str) -> Any:
    """Return an array computed beside the program, as its reader needs it."""
    if isinstance(array, np.ndarray):
        if reason not in ON_HOST:
            with jax.enable_x64(True):
                return jax.device_put(array)
        array.flags.writeable = False  # it may be asked for again
    return array


def _needed(trace: Trace, index: int) -> list[tuple[int, Any, Any]] | None:
    """Return the entries that a value follows from: first value, entry, and array of an input."""
    state: Any = trace.state
    known: Any = trace.outcome.glanced or {}
    wanted, found, n_inputs, nodes = {index}, [], len(trace.arrays), 0
    while wanted:
        entry, count = state.entry, state.count
        state = state.parent
        if entry is None:
            continue
        array = None
        if isinstance(entry, Input):
            n_inputs -= 1
            array = trace.arrays[n_inputs]
        values = range(count - len(entry.avals), count)
        if wanted.isdisjoint(values):
            continue
        mine = sorted(wanted.intersection(values), reverse=True)
        wanted.difference_update(values)
        if known.keys() >= {*mine}:
            found += [(v, Input(entry.avals[v - values[0]]), known[v]) for v in mine]
            continue
        found.append((values[0], entry, array))
        if isinstance(entry, Node):
            nodes += 1
            if nodes > MOST or not is_exact(entry):
                return None
            wanted.update(entry.inputs)
    return found[::-1]
