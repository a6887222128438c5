"""Recipes for the program of a state: what comes out of it, and which inputs it may write over.

A recipe is remembered with the state, by what is alive, so a loop makes it once.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from leafax.functional.execution.donation import pair
from leafax.functional.execution.plan import Plan, plan_for
from leafax.functional.lowering.lower import is_checked
from leafax.functional.lowering.vjp import has_gradients
from leafax.functional.program.meta import MetaArray
from leafax.functional.program.program import Node, Program

from .._core.trie import State, Trace, local
from .._tracing.bundles import pending_bundles
from .._tracing.leaf_tuples import frozen_inputs
from .._tracing.undo import written_over
from .homes import homes
from .turns import Arranged, plan_of_turn


class Recipe(NamedTuple):
    """Recipe that runs the program of one state for one set of live tensors.

    Attributes:
      places: value number -> position among the outputs.
      saves: what the graph keeps, see `ResidualPlan`.
      sizes: of the program, for `explain()`: ops, inputs, outputs that tensors hold.
    """

    plan: Plan | Arranged
    places: dict[int, int]
    saves: Any
    sizes: tuple[int, int, int]


def recipe_of(trace: Trace, pending: list[Any], keep: Any, donate: tuple[int, ...]) -> Recipe:
    """Make the recipe of the program that a trace has come to.

    Args:
      pending: the tensors that are computed.
      keep: what the graph needs, or None.
      donate: the inputs that outputs may be written over.
    """
    state = trace.state
    held = {t._v.index for t in pending}
    held.update(*[bundle.kinds.numbers for bundle in pending_bundles(trace)])
    numbers = held.union([v.index for v in keep.values]) if keep else held
    entries, index_of = entries_to(state)
    # Sorted: where a step is recorded for the first time, tensors may come in another order.
    outputs, donate = pair(entries, tuple(sorted(numbers)), donate)
    over = written_over(trace)
    guards: tuple[tuple[int, int], ...] = ()
    if any(map(is_checked, entries)):
        guards = tuple([(k, over[n]) for k, n in enumerate(outputs) if n in over])
    lies = homes(trace, over)
    pairs = tuple([(k, lies[n]) for k, n in enumerate(outputs) if n in lies])
    residuals = tuple((index_of[s], w) for s, w in keep.residuals) if keep else ()
    program = Program(tuple(entries), outputs, residuals)
    # A turn of a training loop has gradients, and keeps no residuals for others.
    turn = not residuals and local.cuts.capture is None and has_gradients(entries)
    make = plan_of_turn if turn else plan_for
    plan = make(program, donate, frozen_inputs(trace), guards, pairs)
    sizes = len(plan.nodes), len(plan.program.entries) - len(plan.nodes), len(held)
    return Recipe(plan, {n: k for k, n in enumerate(outputs)}, keep, sizes)


def entries_to(state: State) -> tuple[list[Any], dict[State, int]]:
    """Return a program's entries up to `state`, and each state's place among them."""
    entries: list[Any] = []
    index_of: dict[State, int] = {}
    for s in state.path():
        entry = s.entry
        if entry is None:
            continue
        if isinstance(entry, Node) and entry.primal is not None:
            primal = index_of.get(entry.primal)
            entry = Node(entry.call, entry.inputs, entry.avals, primal, entry.where)
        index_of[s] = len(entries)
        entries.append(entry)
    return entries, index_of


def _references(arrays: list[Any]) -> list[int]:
    return [*map(sys.getrefcount, arrays)]


_NO_ARRAYS = (float, int, MetaArray)
#: How many references there are to an array that only the trace holds.
_NOBODY = _references([object()])[0]


def donatable(trace: Trace, pending: list[Any]) -> tuple[int, ...]:
    """List inputs whose buffers nobody can see any more, for outputs to be written there."""
    arrays = trace.arrays
    references = _references(arrays)
    if min(references, default=_NOBODY + 1) > _NOBODY:
        return ()
    want: dict[Any, int] = {}
    values = {t._v.index: t._v for t in pending}  # several tensors may be one output
    for bundle in pending_bundles(trace) if trace.memory.bundles else ():
        values.update(zip(bundle.kinds.numbers, bundle.kinds.values, strict=True))
    for value in values.values():
        key = (value.shape, value.dtype)
        want[key] = want.get(key, 0) + 1
    if not want:
        return ()
    found = []
    for i, count in enumerate(references):
        if count > _NOBODY or type(arrays[i]) in _NO_ARRAYS:
            continue
        array = arrays[i]
        key = (array.shape, array.dtype)
        if want.get(key, 0) > 0:
            want[key] -= 1
            found.append(i)
    return tuple(found)


def most_held(arrays: list[Any], places: tuple[int, ...]) -> int:
    """Return how many references there are to that one of these arrays that most hold."""
    return max(map(sys.getrefcount, map(arrays.__getitem__, places)))


#: How many references `most_held` sees to arrays that only the list holds.
MOST_IF_NOBODY = most_held([object()], (0,))


def donates(arrays: list[Any], donate: tuple[int, ...]) -> bool:
    """Tell whether there are inputs to donate again, which nobody else holds."""
    return bool(donate) and most_held(arrays, donate) <= MOST_IF_NOBODY
