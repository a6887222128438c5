"""Remembered backward passes.

What a backward through the running trace records depends on the trie's state, on the root and
on which leaves hold a gradient already, unless hooks take part. So it is a step like any other:
the first walks find out where it leads, later ones go there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import jax
import jax.numpy as jnp

from leafax.functional.program.transformation import outside

from ..._core.locks import sharing
from ..._core.trie import LEAF, NODE, Trace, Value, local
from ..._dispatch.macro_steps import MacroStep
from ..._rules.saved_columns import active_saves
from ..._storage.enter import enter
from ..._storage.write import bump, rebind
from ..._tracing import inputs
from ..._tracing.inputs import Source, from_array, make
from ..._tracing.loop_cuts import over_budget
from ..._tracing.novelty import note_met, note_new, watched
from ..engine.task import GraphTask, accumulating
from ..graph.edges import gradient_edge


class Gradients(NamedTuple):
    """Gradients that a backward pass gives to tensors: the effects of its `MacroStep`.

    Attributes:
      grads: for each leaf its `.grad` after the pass, whether that was added in place.
      places: which leaves these are, where not all get one.
      retained: `(state, output)` of a retaining tensor, and its gradient.
      constants: arrays that entered on the way: the gradient of the root.
    """

    grads: tuple[tuple[Value, bool], ...]
    places: tuple[int, ...] = ()
    retained: tuple[tuple[Any, Value], ...] = ()
    constants: tuple[Any, ...] = ()


_ones: dict[Any, Any] = {}


def ones_like(kind: Any) -> Any:
    """Return the implicit gradient of a scalar: one array a kind, shared."""
    key = (tuple(kind.shape), kind.dtype)
    array = _ones.get(key)
    if array is None:
        with outside(), jax.enable_x64(True):  # no tracer may be kept
            array = _ones[key] = jnp.ones(*key)
    return from_array(array)


def run(root: Any, keep_graph: bool) -> bool:
    """Accumulate the gradients of `root`, a real tensor of one element, into the leaves.

    Returns:
      False, with nothing done, if more takes part than the running trace.
    """
    trace = local.trace
    value = root._v
    memorable = (
        value.role == NODE
        and value.index >= 0
        and root._trace is trace
        and not trace.graph.hooked
        and local.settings.grad_layout
        and not (trace.graph.retains and _retained(trace))
    )
    before = trace.state
    head = before.next.get(("leaves", value, keep_graph)) if memorable else None
    if not memorable or head is None and any(map(_is_older, trace.sources.values())):
        return False
    key: Any = None
    if head is not None:
        leaves = [trace.sources[v] for v in head]
        # From looking at a gradient to adding to it no other thread may take or leave it.
        with accumulating, sharing:
            held = None
            if not local.turned or [t._v.shape for t in leaves] == [v.shape for v in head]:
                held = held_gradients(leaves, trace)
            if held is not None:
                key = ("backward", head, keep_graph, *held)
                step = trace.state.next.get(key)
                if step is not None and step.reads.isdisjoint(trace.graph.freed):
                    replay(trace, step, leaves)
                    if watched:
                        note_met()
                    return True
    if head is None:
        note_new()
    elif watched:
        note_met()
    start = trace.state
    entered = len(trace.arrays)
    fresh = {id(t._grad) for t in trace.sources.values() if t._grad is not None}
    roots = [(gradient_edge(root), ones_like(root._v))]
    task = GraphTask(roots, keep_graph=keep_graph, create_graph=False)
    task.run()
    if not is_whole(task, trace):
        return True
    by_tensor = {id(t): v for v, t in trace.sources.items() if v.role == LEAF}
    leaf_effects = [(leaf, g) for kind, leaf, g in task.effects if kind == "leaf"]
    if any(id(leaf) not in by_tensor for leaf, _ in leaf_effects):
        return True
    arrays = tuple(trace.arrays[entered:])
    if not all(any(a is one for one in _ones.values()) for a in arrays):
        return True  # a gradient, which another thread had taken meanwhile, came back with its data
    reached = tuple(by_tensor[id(t)] for t, _ in leaf_effects)
    before.next[("leaves", value, keep_graph)] = reached
    if key is not None and reached == head:
        grads = tuple((g._v, id(g) in fresh) for _, g in leaf_effects)
        retained = [(_place(trace, r), g._v) for kind, r, g in task.effects if kind == "retain"]
        given = Gradients(grads, retained=tuple(retained), constants=arrays)
        start.next[key] = step_of(task, trace, given)
    return True


def held_gradients(leaves: Sequence[Any], trace: Trace) -> list[Value | None] | None:
    """Return the values of the leaves' gradients in the trace; None if others take part."""
    held: list[Value | None] = []
    for t in leaves:
        if t._grad is None and not t._eventful:
            held.append(None)
        elif is_plain(t):
            grad = t._grad
            held.append(None if grad is None else enter(grad, trace))
        else:
            return None
    return held


def is_whole(task: GraphTask, trace: Trace) -> bool:
    """Tell whether all that a pass did is in the trace."""
    return task.plain and not task.numbered and local.trace is trace


def step_of(task: GraphTask, trace: Trace, effects: Any) -> MacroStep:
    """Return the step that a pass through the trace, which was just walked, is from now on."""
    freed = frozenset() if task.keep_graph else frozenset(task.passed)
    reads = frozenset(filter(active_saves, task.passed))
    return MacroStep(trace.state, effects=effects, freed=freed, reads=reads)


def is_undisturbed(trace: Trace) -> bool:
    """Tell whether nothing but nodes and tensors has a say in a pass that is walked now."""
    settings = local.settings
    if local.turned or settings.watch is not None or not settings.grad_layout:
        return False
    if not local.mode.plain:
        return False
    graph, memory = trace.graph, trace.memory
    if graph.hooked or graph.frames or graph.duals or memory.elsewhere or memory.silent:
        return False
    return not (graph.detached or graph.retains or over_budget(trace))


def _is_older(source: Any) -> bool:
    """Tell whether the graph goes on from here to nodes of earlier programs."""
    return type(source) is Source


def _retained(trace: Trace) -> bool:
    """Tell whether a retained gradient is there already: another would be added to it."""
    return any((t := r()) is not None and t._grad is not None for r in trace.graph.retains.values())


def _place(trace: Trace, holder: Any) -> Any:
    return next(k for k, r in trace.graph.retains.items() if r is holder)


def is_plain(leaf: Any) -> bool:
    """Tell whether a leaf has no hooks, and a gradient that nobody else looks at."""
    if leaf._hooks or leaf._post_accumulate_hooks or leaf._grad_dtype:
        return False
    node = leaf._accumulator() if leaf._accumulator is not None else None
    if node is None:
        leaf._accumulator = None  # gone: not to be asked again
    elif node.pre_hooks or node.post_hooks:
        return False
    # First that there is nothing, then the look: another thread sets the field, then the flag.
    leaf._eventful = False
    events = leaf._hooks, leaf._post_accumulate_hooks, leaf._grad_dtype, leaf._accumulator
    if any(event is not None for event in events):
        leaf._eventful = True
    return leaf._grad is None or not leaf._grad._shares


def replay(trace: Trace, step: MacroStep, leaves: Sequence[Any]) -> None:
    """Give the leaves the gradients that a remembered pass ends with."""
    trace.state = step.state
    grads, _, retained, constants = step.effects
    trace.arrays += constants
    new, kind = object.__new__, inputs._tensor_class
    made: list[Any] = []
    try:
        for leaf, (value, in_place) in zip(leaves, grads, strict=True):
            if in_place:
                bump(leaf._grad)
                rebind(leaf._grad, value)
            else:
                leaf._grad = grad = new(kind)
                grad._v = value
                grad._trace = trace
                made.append(grad)
    finally:  # however far an interrupt let it come
        trace.refs += map(ref, made)
    for place, grad_value in retained:
        holder = trace.graph.retains[place]()
        if holder is not None:
            holder._grad = make(grad_value, trace)
    trace.graph.freed |= step.freed
