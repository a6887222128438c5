"""The value of a pending tensor without running the program that it is pending in."""

from __future__ import annotations

from typing import Any

from leafax.functional import Input, Node, Program, is_exact, picked, plan_for

from ._history import Run, history
from ._host import raw
from ._prepared import has_graph
from ._run import entries_to
from ._step import user_line
from ._threads import sharing, wait_for
from ._trace import NOWHERE, Trace, local

MOST = 8  # ops of what is looked at beside a program


def peek(t: Any) -> Any:
    """The array of a tensor that another thread has pending, without touching its trace.

    The values that it depends on are computed anew from that trace's inputs: they are
    immutable, so the other thread may go on.
    """
    with sharing:
        wait_for(t)
        if t._array is not None:
            return t._array
        trace, value = t._trace, t._v
        if trace is None or trace.done:
            raise RuntimeError(
                "this tensor has no value: the program that would have computed it failed. The "
                "error was raised where the program ran."
            )
        state, arrays = trace.state, list(trace.arrays)
    entries, _ = entries_to(state)
    n_inputs, n_values, kept = 0, 0, []
    for entry in entries:
        if isinstance(entry, Input):
            if n_inputs == len(arrays):
                break
            n_inputs += 1
        kept.append(entry)
        n_values += len(entry.avals)
        if n_values > value.index:
            break
    program = Program(tuple(kept), (value.index,))
    return plan_for(program).run(arrays[:n_inputs]).outputs[0]


def compute(t: Any) -> Any:
    """The array of a tensor, without cutting the program that it is pending in."""
    from ._enter import enter

    enter(t, local.trace)
    return peek(t)


def glance(t: Any, reason: str) -> Any:
    """The array of a tensor that follows from data at rest by a few ops.

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
    needed = _needed(trace, value.index)
    if needed is None:
        return None
    arrays = [array for _, entry, array in needed if isinstance(entry, Input)]
    program = picked([(first, first, entry) for first, entry, _ in needed], (value.index,))
    outcome = plan_for(program).run(arrays)
    if outcome.flags is not None and any(raw(outcome.flags[0])):
        return None  # it raises in the program, once
    nodes = len(needed) - len(arrays)
    told = (f"{reason} of data", user_line(), nodes, outcome.how, outcome.seconds)
    history.append(Run(*told, inputs=len(arrays), outputs=1, saved=0, donated=0))
    return outcome.outputs[0]


def _needed(trace: Trace, index: int) -> list[tuple[int, Any, Any]] | None:
    """What a value follows from: of each entry its first value, itself and its array, if any."""
    state: Any = trace.state
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
        wanted.difference_update(values)
        found.append((values[0], entry, array))
        if isinstance(entry, Node):
            nodes += 1
            if nodes > MOST or not is_exact(entry):
                return None
            wanted.update(entry.inputs)
    return found[::-1]
