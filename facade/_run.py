"""Cuts: when the recorded program runs, and what comes out of it.

`cut` runs all that the thread has pending. The outputs are the tensors that are alive, in
creation order, and what a later backward will need of the graph. How to do it is remembered
with the state that was reached (`Recipe`), so a loop pays for collecting its live tensors and
for the dispatch, nothing else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Set
from contextlib import suppress
from typing import Any, NamedTuple

import jax

from leafax.functional import Node, Plan, Program, pair, plan_for

from . import _graph, _keep
from ._bound import bound
from ._enter import Source
from ._faults import Pending, check_faults
from ._history import Run, history, plans
from ._host import placed
from ._inside import refuse_constant
from ._step import user_line
from ._storage import unshare
from ._threads import ended, running, sharing
from ._together import tell
from ._trace import EXTERNAL, LEAF, NODE, State, Trace, local
from ._views import settle_all


class Recipe(NamedTuple):
    """How to run the program of one state for one set of live tensors."""

    plan: Plan
    places: dict[int, int]  # value number -> position among the outputs
    saves: Any  # what the graph keeps, see `_keep.Keep`


def cut(reason: str, want: tuple[Any, ...] = (), where: tuple[str, int] | None = None) -> None:
    """Run the thread's pending program.

    Args:
      reason: for `explain()`.
      want: tensors whose arrays are observed: views among them come out as arrays too.
    """
    trace = local.trace
    try:
        _run(trace, reason, want, where)
    except Exception:
        if not trace.done:  # what cannot be run must not fail all later calls as well
            _give_up(trace)
        raise


def _give_up(trace: Trace) -> None:
    """Leave a program whose gradients cannot be prepared, with its values where those can be."""
    live, arrays = _alive(trace), trace.arrays
    pending, _ = _sorted(live, frozenset())
    trace.arrays = []
    _renew(trace)
    with suppress(Exception):  # the error that is on its way tells more
        recipe = _recipe(trace.state, pending, None, ())
        outputs = recipe.plan.run(arrays).outputs
        with sharing:
            for t in pending:
                t._array = outputs[recipe.places[t._v.index]]
            _leave(trace, live)


def _run(trace: Trace, reason: str, want: tuple[Any, ...], where: tuple[str, int] | None) -> None:
    with sharing:
        begun = _begin(trace, want)
    if begun is None:
        return
    live, pending, outputs, recipe, arrays = begun
    try:
        outcome = recipe.plan.run(arrays)
        # From here on the device computes, so what remains costs no time.
        del arrays, begun
        local.clock += 1
        trace.state.used = local.clock
        where = where or user_line()
        with sharing:
            _end(trace, recipe, outcome, live, pending, outputs)
    finally:
        with sharing:
            running.pop(trace)
            ended.notify_all()
    bound(local)
    record = Run(
        reason, where, len(recipe.plan.nodes), outcome.how, outcome.seconds,
        len(recipe.plan.program.entries) - len(recipe.plan.nodes), len(set(outputs)),
        len(outcome.residuals) + len(recipe.places) - len(set(outputs)),
        len(recipe.plan.donate) if outcome.how != "op by op" else 0,
    )  # fmt: skip
    history.append(record)
    plans.append((record, recipe.plan))
    if outcome.flags is not None:
        flags, values = outcome.flags
        local.faults.append(Pending(flags, values, recipe.plan.side.faults))


def _begin(trace: Trace, want: tuple[Any, ...]) -> Any:
    """Take the program from the thread; what it takes to run it, or None if nothing is wanted."""
    live = _alive(trace)
    for t in live:
        if t._viewed is not None:
            settle_all(trace)
            live = _alive(trace)
            break
    state = trace.state
    local.budget = 0
    pending, graph = _sorted(live, {id(t) for t in want} if want else frozenset())
    asked = _keep.asked()
    keep = _keep.to_keep(trace, graph) if graph or trace.grad_fns else None
    if _keep.asked() != asked:  # other threads may have taken tensors meanwhile
        return _begin(trace, want)
    if keep and trace.together:  # it asks which tensors hold what it keeps
        tell(trace)
        live = _alive(trace)
    if not pending and not keep:
        _leave(trace, live)
        return None
    if state.plans is None:
        state.plans = {}
    outputs = tuple([t._v.index for t in pending])
    donate = state.plans.get(outputs)  # what could be donated last time
    if not donate or not _still_donatable(trace, donate):
        donate = state.plans[outputs] = _donatable(trace, pending)
    key = (outputs, keep, donate)
    recipe = state.plans.get(key)
    if recipe is None:
        recipe = state.plans[key] = _recipe(state, pending, keep, donate)
    arrays = trace.arrays
    trace.arrays = []
    _renew(trace)
    running[trace] = threading.get_ident()
    return live, pending, outputs, recipe, arrays


def _end(
    trace: Trace, recipe: Recipe, outcome: Any, live: list[Any], pending: list[Any],
    outputs: tuple[int, ...],
) -> None:  # fmt: skip
    """Give the tensors their arrays and what later gradients need of the graph."""
    for t, index in zip(pending, outputs, strict=True):
        if t._trace is trace and t._v.index == index:  # no other thread gave it a value meanwhile
            t._array = outcome.outputs[recipe.places[index]]
    if recipe.saves:
        _keep.keep(trace, recipe, outcome, live)
    _leave(trace, live)


def _sorted(live: list[Any], wanted: Set[int]) -> tuple[list[Any], list[Any]]:
    """The tensors to compute, and the values whose history somebody holds.

    Args:
      wanted: ids of those that are computed also where they share memory with another.
    """
    pending, graph = [], []
    for t in live:
        value = t._v
        if t._stale is not None:
            graph.append(t._stale)
            continue
        if value.role == NODE:
            graph.append(value)
        if t._array is None and value.index >= 0:
            if not t._shares or t._store is None or t is t._store.cell or id(t) in wanted:
                pending.append(t)
    return pending, graph


def _alive(trace: Trace) -> list[Any]:
    """The tensors in the trace that somebody holds."""
    found = [t for r in trace.refs if (t := r()) is not None and t._trace is trace]
    return list(dict.fromkeys(found))  # each once: one may have entered twice


def _renew(trace: Trace) -> None:
    """Give the thread a new, empty trace; `trace` is done, but its tensors still wait."""
    trace.done = True
    if local.trace is trace:
        local.trace = Trace(local.root(local.mode))


def _leave(trace: Trace, live: list[Any]) -> None:
    """Let the live tensors leave the trace with what they have."""
    if not trace.done:
        _renew(trace)
    for t in live:
        if t._trace is not trace:  # another thread took it
            continue
        value = t._v
        if t._array is not None and not t._shares and value.role <= LEAF:
            t._v, t._trace = value.resting, None  # most: data, parameters, results without history
            continue
        value = t._stale if t._stale is not None else value
        if value.role == NODE and t._grad_fn is None:
            t._grad_fn, t._out = _graph.later(trace, value), value.edge.out
        elif value.role == EXTERNAL and t._grad_fn is None:
            t._grad_fn, t._out = _graph.edge_of(trace, value)
        if t._stale is not None:
            t._stale = value.resting
        t._v = t._v.resting
        t._trace = None  # its node is known, and what a Function saved must not hold the trace
        if t._shares and t._store is not None and not t._lens:
            unshare(t)
    trace.refs.clear()
    trace.frames = None
    trace.entered.clear()
    trace.arrays = []
    trace.peeked = None
    trace.let_go_of_nodes()
    if trace.hooked:
        _nodes_leave(trace)


def _nodes_leave(trace: Trace) -> None:
    """Let the nodes that the trace's sources lead to no longer hold the trace, which holds them."""
    roots = [s._grad_fn for s in trace.sources.values() if type(s) is Source]
    stack = [n for n in roots if n.trace is trace]
    stack += [e[0] for n in roots if n.trace is None for e in n.next_edges() if e is not None]
    while stack:
        node = stack.pop()
        if node.trace is trace:
            node.leave()
            stack += [e[0] for e in node.next_edges() if e is not None]


def _recipe(state: State, pending: list[Any], keep: Any, donate: tuple[int, ...]) -> Recipe:
    numbers = {t._v.index for t in pending}
    if keep:
        numbers.update(v.index for v in keep.values)
    entries, index_of = entries_to(state)
    # Sorted: where a step is recorded for the first time, tensors may come in another order.
    outputs, donate = pair(entries, tuple(sorted(numbers)), donate)
    residuals = tuple((index_of[s], w) for s, w in keep.residuals) if keep else ()
    program = Program(tuple(entries), outputs, residuals)
    return Recipe(plan_for(program, donate), {n: k for k, n in enumerate(outputs)}, keep)


def entries_to(state: State) -> tuple[list[Any], dict[State, int]]:
    """The program's entries from the root to `state`, and each state's place among them."""
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


def _references(arrays: list[Any]) -> int:
    array = arrays[0]
    return sys.getrefcount(array)


#: How many references a function sees to an array that only the trace holds.
_NOBODY = _references([object()])


def _donatable(trace: Trace, pending: list[Any]) -> tuple[int, ...]:
    """Inputs whose buffers nobody can see any more: the outputs may be written there."""
    want: dict[Any, int] = {}
    for t in {t._v.index: t for t in pending}.values():  # several tensors may be one output
        key = (t._v.shape, t._v.dtype)
        want[key] = want.get(key, 0) + 1
    if not want:
        return ()
    found = []
    arrays = trace.arrays
    for i in range(len(arrays)):
        array = arrays[i]
        if sys.getrefcount(array) > _NOBODY or type(array) in (float, int):
            continue
        key = (array.shape, array.dtype)
        if want.get(key, 0) > 0:
            want[key] -= 1
            found.append(i)
    return tuple(found)


def _still_donatable(trace: Trace, donate: tuple[int, ...]) -> bool:
    arrays, count = trace.arrays, sys.getrefcount
    for i in donate:
        array = arrays[i]
        if count(array) > _NOBODY:
            return False
    return True


def observe(t: Any, reason: str) -> Any:
    """The array of `t`, running what it takes; raises the data-dependent errors found so far."""
    if local.look is not None and t._array is None:
        return local.look(t, reason)
    if t._array is None and t._shares:
        with sharing:
            if t._store is not None and not t._lens:
                t._array = t._store.cell._array  # nothing between the storage and this tensor
    if t._array is None:
        refuse_constant()
        away = t._trace is not None and not t._trace.done and t._trace is not local.trace
        if local.aside or (away and t._stale is None):  # what is stale is read anew here
            from ._peek import compute, peek

            array = compute(t) if local.aside else peek(t)
            check_faults()
            return array
        from ._enter import enter
        from ._peek import glance
        from ._reading import was_leaf

        if not away and (array := glance(t, reason)) is not None:
            check_faults()
            return array
        if t._stale is not None and (t._creation or was_leaf(t)):
            t = t.detach()  # its data are there, whatever its history is
        enter(t, local.trace)
        cut(reason, (t,))
    check_faults()
    array = placed(t)
    return observe(t, reason) if array is None else array  # if another thread wrote to it just now


def synchronize() -> None:
    """Run everything that is pending and wait for it; raise data-dependent errors.

    >>> import leafax
    >>> x = leafax.ones(3) + 1
    >>> leafax.synchronize()
    """
    live = _alive(local.trace)
    cut("synchronize()")
    jax.block_until_ready([t._array for t in live if t._array is not None])
    check_faults()
