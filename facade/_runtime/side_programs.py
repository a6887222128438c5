"""Small values computed beside the program that they are pending in, which goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.plan import plan_for
from leafax.functional.execution.single_ops import is_exact
from leafax.functional.program.program import Input, Node
from leafax.functional.program.slices import PlacedEntry, needed_entries, renumber

from .._core.host_transfer import on_host as to_host
from .._core.host_transfer import raw
from .._core.run_log import ON_HOST, Run, history
from .._core.trie import NOWHERE, State, Trace, local
from .._storage.host_arrays import data_of
from .._tracing.draws import is_draw
from .._tracing.infer import user_line
from .._tracing.preparations import has_graph

MOST = 8  # ops of what is looked at beside a program
FEW = 4096  # elements of what is at rest as soon as one is looked at


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
    if array is None:
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
    arrays = [e.array for e in needed if isinstance(e.entry, Input)]
    # Of a sentence that is taken apart all tokens will be looked at.
    asked = [*needed[-1].values]
    # The next draw begins where this one has left the generator.
    asked += [e.first + 1 for e in needed[:-1] if is_draw(e.entry)]
    program = renumber(needed, asked)
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


def _needed(trace: Trace, index: int) -> list[PlacedEntry] | None:
    """Return the entries that a value follows from; None if they are many or round anything."""
    found, nodes = [], 0
    for placed in needed_entries(_entries_backward(trace), {index}, trace.outcome.glanced):
        found.append(placed)
        if isinstance(placed.entry, Node):
            nodes += 1
            if nodes > MOST or not is_exact(placed.entry):
                return None
    return found[::-1]


def _entries_backward(trace: Trace) -> Iterator[PlacedEntry]:
    """Yield the entries that this thread recorded, the last first."""
    state: State | None = trace.state
    n_inputs = len(trace.arrays)
    while state is not None:
        entry, array = state.entry, None
        if isinstance(entry, Input):
            n_inputs -= 1
            array = trace.arrays[n_inputs]
        if entry is not None:
            yield PlacedEntry(state, state.count - len(entry.avals), entry, array)
        state = state.parent
