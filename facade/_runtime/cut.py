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

from leafax.functional.execution.memory import OutOfMemoryError

from .._autograd.graph.residual_plan import residual_plan
from .._core.faults import Pending
from .._core.locks import ended, running, sharing
from .._core.run_log import ON_HOST, STEP, Run, history, plans
from .._core.trie import LEAF, NODE, Trace, Value, local
from .._rules.reads_of_gradients import count_traced
from .._storage.pending_views import is_unsettled
from .._storage.settle import settle_all
from .._tracing.bundles import pending_bundles
from .._tracing.eviction import bound
from .._tracing.infer import user_line
from .._tracing.leaf_tuples import mark_all_entered
from .._tracing.preparations import REASON as PREPARED
from .._tracing.undo import take_back
from .compilations import late, tell
from .exits import hand_out, leave_all, renew
from .program_differences import note_new
from .recipes import Recipe, donatable, donates, recipe_of
from .remembered_exits import Walk, is_computed, known, leave, remember


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
        elif isinstance(error, Exception):
            for bundle in trace.memory.bundles:
                bundle.release()
        if isinstance(error, Exception):
            file, line = where or user_line()
            error.add_note(f"in the program that {reason} ran at {file}:{line}")
        if isinstance(error, Exception) or reason == STEP:
            abandon(trace, error)
    if isinstance(error, OutOfMemoryError):
        error.tell_held()


def abandon(trace: Trace, error: BaseException) -> None:
    """Leave a program that cannot run; `salvage` computes what can be computed of it."""
    trace.outcome.failure = error
    renew(trace)
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
            hand_out(trace, recipe, outcome, live, walk, pending)
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
        len(outcome.residuals) + len(recipe.places) - held, len(plan.donate), outcome.why,
    )  # fmt: skip
    if outcome.how != "cached":
        record = note_new(record, plan)
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
    if trace.memory.bundles:
        for bundle in pending_bundles(trace):
            numbers += bundle.kinds.numbers
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
        leave_all(trace, live)
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
    renew(trace)
    running[trace] = threading.get_ident()
    return Begun(live, walk, pending, recipe), arrays


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
        if is_computed(t, wanted):
            pending.append(t)
    return pending, graph
