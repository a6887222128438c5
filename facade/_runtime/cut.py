"""Cuts: when the recorded program runs, and what comes out of it.

`cut` runs all that the thread has pending. The outputs are the tensors that are alive, in
creation order, and what a later backward will need of the graph. How to do it is remembered
with the state that was reached (`recipes.py`), so a loop pays for collecting its live tensors and
for the dispatch, nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import jax
import numpy as np

from leafax.functional.program.transformation import transformation

from .._autograd.graph.residual_plan import residual_plan
from .._autograd.graph.saved_residuals import save_residuals
from .._core.faults import Pending, check_faults
from .._core.host_transfer import placed
from .._core.locks import ended, running, sharing
from .._core.run_log import ON_HOST, STEP, Run, history, plans
from .._core.runner import Runner
from .._core.trie import LEAF, NODE, Local, Trace, Value, local
from .._host.looks import keep_on_host
from .._rules.reads_of_gradients import count_traced
from .._storage.enter import enter, was_leaf
from .._storage.host_arrays import data_of
from .._storage.pending_views import is_unsettled
from .._storage.settle import settle_all
from .._tracing.eviction import bound
from .._tracing.infer import user_line
from .._tracing.inputs import Source
from .._tracing.jax_transforms import refuse_over, value_of
from .._tracing.leaf_tuples import mark_all_entered
from .._tracing.preparations import REASON as PREPARED
from .._tracing.tracer_checks import refuse_constant
from .._tracing.undo import take_back
from .compilations import late, tell
from .recipes import Recipe, donatable, donates, recipe_of
from .recomputation import compute, compute_elsewhere, salvage
from .remembered_exits import Walk, is_pending, known, leave, remember
from .side_programs import evaluate_beside


class Begun(NamedTuple):
    """A program that was taken from the thread, to be run.

    Attributes:
      live: the tensors in it that are alive.
      walk: how they leave it, if that is remembered.
      pending: those to be computed, where no walk tells.
    """

    live: list[Any]
    walk: Walk | None
    pending: list[Any]
    recipe: Recipe


def cut(
    reason: str, want: tuple[Any, ...] = (), where: tuple[str, int] | None = None
) -> Recipe | None:
    """Run the thread's pending program.

    It runs whole or not at all. If it is interrupted before the device took it, all stays pending;
    if it fails, tensors keep what they held, and what can be computed without what failed is
    computed when it is asked for. After an optimizer's step no tensor at rest keeps a new value.

    Args:
      reason: for `explain()`.
      want: tensors whose arrays are observed: views among them come out as arrays too.

    Returns:
      how it ran; None if nothing had to.
    """
    trace = local.trace
    if trace.inside is not None:  # its values are computed beside it, when they are asked for
        return None
    given: Any = trace.arrays
    arrays: Any = None
    begun: Any = None
    outcome: Any = None
    landed: list[Any] = []
    interrupt: BaseException | None = None
    try:
        with sharing:
            taken = _begin(trace, want)
        if taken is None:
            return None
        begun, arrays = taken
        outcome = begun.recipe.plan.run(arrays, reason in ON_HOST, reason == PREPARED, landed)
        # From here on the device computes, so what remains costs little time.
        given = arrays = taken = None
        _finish(trace, begun, outcome, reason, where)
    except BaseException as error:
        if not landed and outcome is None:
            _turn_back(trace, given, error, reason, where)
            raise
        interrupt = error
    if interrupt is not None:  # it has happened, so it does whole
        if outcome is None:
            outcome = begun.recipe.plan.outcome(landed[0], "cached", 0.0)
        _finish(trace, begun, outcome, reason, where)
    bound(local)
    if interrupt is not None and not isinstance(interrupt, Exception):
        raise interrupt
    if late:
        tell()
    return begun.recipe  # type: ignore[no-any-return]


def _turn_back(
    trace: Trace, arrays: list[Any], error: BaseException, reason: str, where: Any
) -> None:
    """Leave things as they were before a program that did not run."""
    with sharing:
        trace.arrays, trace.outcome.done = arrays, False
        local.trace = trace
        if running.pop(trace, None) is not None:
            ended.notify_all()
        if reason == STEP:
            take_back(trace, arrays)
        if isinstance(error, Exception):
            file, line = where or user_line()
            error.add_note(f"in the program that {reason} ran at {file}:{line}")
        if isinstance(error, Exception) or reason == STEP:
            abandon(trace, error)


def abandon(trace: Trace, error: BaseException) -> None:
    """Leave a program that cannot run; `salvage` computes what can be computed of it."""
    trace.outcome.failure = error
    _renew(trace)
    for t in trace.living():
        value = t._v
        if t._array is not None and value.role <= LEAF:
            leave(trace, t)
        elif value.index >= 0:  # no step of the trie may be found by it any more
            t._v = Value(
                value.index, value.aval, requires_grad=value.requires_grad, role=value.role,
                inference=value.inference, strides=value.strides,
            )  # fmt: skip


def _finish(
    trace: Trace, begun: Begun, outcome: Any, reason: str, where: tuple[str, int] | None
) -> None:
    """Hand out a program's results; done again, it hands out the rest."""
    live, walk, pending, recipe = begun
    plan = recipe.plan
    if trace in running:
        if outcome.faults is not None and not trace.outcome.told:
            trace.outcome.told = True
            local.faults.append(Pending(outcome.faults, plan.side.faults))
        with sharing:
            _end(trace, recipe, outcome, live, walk, pending)
            running.pop(trace)
            ended.notify_all()
        local.trie.clock += 1
        trace.state.used = local.trie.clock
    note_run(recipe, outcome, reason, where, plan)


def note_run(
    recipe: Recipe, outcome: Any, reason: str, where: tuple[str, int] | None, plan: Any
) -> None:
    """Log a run of a program for `explain()`.

    Args:
      plan: what ran: the recipe's, or another of the same program.
    """
    nodes, inputs, held = recipe.sizes
    record = Run(
        reason, where or user_line(), nodes, outcome.how, outcome.seconds, inputs, held,
        len(outcome.residuals) + len(recipe.places) - held,
        len(plan.donate) if outcome.how in ("compiled", "cached") else 0,
    )  # fmt: skip
    history.append(record)
    plans.append((record, plan))


def _begin(trace: Trace, want: tuple[Any, ...]) -> Any:
    """Take the program from the thread: a `Begun` and its arrays, or None if nothing is wanted."""
    live = trace.living()
    wanted = {id(t) for t in want} if want else frozenset()
    walk = known(trace, live, wanted)
    pending: list[Any] = []  # worked out where no walk says all that is asked of them
    graph: Sequence[Value]
    if walk is None and any(map(is_unsettled, live)):
        settle_all(trace)
        live = trace.living()
        walk = known(trace, live, wanted)
    if walk is not None:
        numbers, graph = walk.numbers, walk.graph
    else:
        pending, graph = _sorted(live, wanted)
        numbers = tuple([t._v.index for t in pending])
        remember(trace, live, wanted)
    state = trace.state
    local.budget = 0
    keep = None
    notes = trace.graph
    if graph or notes.grad_fns:
        untouched = walk is not None and not (notes.freed or notes.grad_fns or notes.frames)
        if untouched:
            keep = walk.keep  # type: ignore[union-attr]
        if keep is None:
            asked = count_traced()
            keep = residual_plan(trace, graph)
            if count_traced() != asked:  # other threads may have taken tensors meanwhile
                return _begin(trace, want)
            if untouched:
                walk.keep = keep  # type: ignore[union-attr]
        if keep and walk is not None:
            pending, walk = [live[i] for i in walk.pending], None
        if keep and trace.bulk:  # it asks which tensors hold what it keeps
            mark_all_entered(trace)
            live = trace.living()
    if not numbers and not keep:
        _leave(trace, live)
        return None
    if state.plans is None:
        state.plans = {}
    key = (numbers, keep)
    recipe = state.plans.get(key)
    if recipe is None or not donates(trace.arrays, recipe.plan.donate):
        if walk is not None:
            pending = [live[i] for i in walk.pending]
        donate = donatable(trace, pending)
        recipe = state.plans.get((key, donate))
        if recipe is None:
            recipe = state.plans[key, donate] = recipe_of(trace, pending, keep, donate)
        state.plans[key] = recipe  # next time the same is asked for first
    arrays = trace.arrays
    trace.arrays, trace.bulk = [], ()
    _renew(trace)
    running[trace] = threading.get_ident()
    return Begun(live, walk, pending, recipe), arrays


def _end(
    trace: Trace, recipe: Recipe, outcome: Any, live: list[Any], walk: Walk | None, pending: Any
) -> None:
    """Give the tensors their arrays and what later gradients need of the graph."""
    outputs, places = outcome.outputs, recipe.places
    if walk is not None:
        outs = walk.outs_of(recipe, live)
        for i in walk.pending if walk.sharing else ():  # before one takes its storage's data over
            if live[i]._trace is trace:
                live[i]._array = outputs[outs[i]]
        for t, k, rest in zip(live, outs, walk.rests, strict=True):
            if t._trace is not trace:  # another thread took it
                continue
            if k >= 0:
                t._array = outputs[k]
            if rest is None:
                leave(trace, t)
            else:
                t._v = rest
                t._trace = None
        _clear(trace)
        return
    for t in pending:
        if t._trace is trace and (place := places.get(t._v.index)) is not None:
            t._array = outputs[place]  # else another thread gave it a value meanwhile
    if recipe.saves:
        save_residuals(trace, recipe, outcome, live)
    _leave(trace, live)


def _sorted(live: list[Any], wanted: Set[int]) -> tuple[list[Any], list[Value]]:
    """Sort the live tensors into those to compute and values whose history is held.

    Args:
      wanted: ids of those that are computed also where they share memory with another.
    """
    pending: list[Any] = []
    graph: list[Value] = []
    for t in live:
        value = t._v
        if t._shares and t._stale is not None:
            graph.append(t._stale)
            continue
        if value.role == NODE:
            graph.append(value)
        if is_pending(t) or id(t) in wanted and t._array is None and value.index >= 0:
            pending.append(t)
    return pending, graph


def _renew(trace: Trace) -> None:
    """Give the thread a new, empty trace; `trace` is done, but its tensors still wait."""
    trace.outcome.done = True
    if local.trace is trace:
        local.trace = Trace(local.root(local.mode))


def _leave(trace: Trace, live: list[Any]) -> None:
    """Take the live tensors out of the trace, with the arrays and history they have."""
    if not trace.outcome.done:
        _renew(trace)
    for t in live:
        if t._trace is trace:  # else another thread took it
            leave(trace, t)
    _clear(trace)


def _clear(trace: Trace) -> None:
    """Drop what a trace that has run holds."""
    trace.refs.clear()
    trace.entered.clear()
    trace.arrays = []
    trace.memory.undo.clear()
    trace.outcome.peeked = None
    trace.graph.let_go_of_nodes()
    if trace.graph.hooked:
        _nodes_leave(trace)


def _nodes_leave(trace: Trace) -> None:
    """Detach from the trace the nodes that its sources lead to; the trace holds these nodes."""
    roots = [s._node for s in trace.sources.values() if type(s) is Source]
    stack = [n for n in roots if n.trace is trace]
    stack += [e[0] for n in roots if n.trace is None for e in n.next_edges() if e is not None]
    while stack:
        node = stack.pop()
        if node.trace is trace:
            node.leave()
            stack += [e[0] for e in node.next_edges() if e is not None]


def observe(t: Any, reason: str) -> Any:
    """Return the array of `t`, running its program; raise data-dependent errors found so far."""
    if local.cuts.capture is not None:
        local.cuts.capture.note_look(reason)
    if local.vmap is not None and t._array is None:
        return local.vmap.observe(t, reason)
    if transformation() is not None:
        return value_of(t, reason)
    if t._array is None and t._shares and (t._viewed is None or t._viewed[1] is None):
        with sharing:
            if t._store is not None and not t._lens:
                t._array = t._store.cell._array  # nothing between the storage and this tensor
    if reason in ON_HOST and (found := _looked_at(t, reason)) is not None:
        return found
    if t._array is None:
        refuse_constant()
        if t._trace is not None and t._trace.outcome.failure is not None:
            array = salvage(t)
            check_faults()
            return array
        refuse_over(t)
        away = t._trace is not None and not t._trace.outcome.done and t._trace is not local.trace
        if local.cuts.aside or (away and t._stale is None):  # what is stale is read anew here
            array = compute(t) if local.cuts.aside else compute_elsewhere(t)
            check_faults()
            return array
        if not away and (array := evaluate_beside(t, reason)) is not None:
            check_faults()
            return array
        if t._stale is not None and (t._creation or was_leaf(t)):
            t = t.detach()  # its data are there, whatever its history is
        enter(t, local.trace)
        cut(reason, (t,))
        if reason in ON_HOST and (found := _looked_at(t, reason)) is not None:
            return found
    check_faults()
    if reason in ON_HOST and t._v.dtype.kind in "iu":
        keep_on_host(t)
        if (found := _looked_at(t, reason)) is not None:
            return found
    array = placed(t)
    return observe(t, reason) if array is None else array  # if another thread wrote to it just now


def _looked_at(t: Any, reason: str) -> np.ndarray | None:
    """Return the data of `t` on the host, if that needs no program and no transfer; else None."""
    array = t._array
    if type(array) is not np.ndarray and (array is not None or not t._shares):
        return None
    found = data_of(t)
    if found is None:
        return None
    check_faults()
    if not found.flags.writeable and t._v.dtype.kind in "iu":
        keep_on_host(t)
    return np.array(found) if reason == "numpy()" else found


def synchronize() -> None:
    """Run everything that is pending and wait for it; raise data-dependent errors.

    >>> import leafax
    >>> x = leafax.ones(3) + 1
    >>> leafax.synchronize()
    """
    live = local.trace.living()
    cut("synchronize()")
    jax.block_until_ready([t._array for t in live if t._array is not None])
    check_faults()


Local.runner = Runner(cut, observe, compute, compute_elsewhere)
