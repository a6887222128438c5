"""Remembered backward passes.

What a backward through the running trace records depends on the trie's state, on the root and
on which leaves hold a gradient already, unless hooks take part. So it is a step like any other:
the first walks find out where it leads, later ones go there at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import ref

import jax
import jax.numpy as jnp

from ..._core.locks import sharing
from ..._core.trie import LEAF, NODE, State, Trace, Value, local
from ..._rules.saved_columns import active_saves
from ..._storage.write import bump, rebind
from ..._tracing import inputs
from ..._tracing.inputs import Source, enter, from_array, make
from ..._tracing.record import over_budget
from ..engine.task import GraphTask, accumulating
from ..graph.edges import gradient_edge


class Memo(NamedTuple):
    """Where a backward pass led.

    Attributes:
      state: the state after it.
      grads: for each leaf its `.grad` after the pass, whether that was added in place.
      retained: `(state, output)` of a retaining tensor, and its gradient.
      freed: the states that it passed, unless the graph is kept.
      reads: those that it passed and that saved something; it fails if that was freed before.
      arrays: constants that entered on the way: the gradient of the root.
    """

    state: State
    grads: tuple[tuple[Value, bool], ...]
    retained: tuple[tuple[Any, Value], ...]
    freed: frozenset[State]
    reads: frozenset[State]
    arrays: tuple[Any, ...]


_ones: dict[Any, Any] = {}


def ones_like(kind: Any) -> Any:
    """The implicit gradient of a scalar: one array a kind, shared."""
    key = (tuple(kind.shape), kind.dtype)
    array = _ones.get(key)
    if array is None:
        with jax.enable_x64(True):
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
        and not trace.hooked
        and local.grad_layout
        and not (trace.retains and _retained(trace))
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
            held: list[Any] | None = []
            if local.turned and any(
                t._v.shape != v.shape for t, v in zip(leaves, head, strict=True)
            ):
                held, leaves = None, []
            for t in leaves:
                if t._grad is None and not t._eventful:
                    held.append(None)  # type: ignore[union-attr]
                elif is_plain(t):
                    grad = t._grad
                    held.append(None if grad is None else enter(grad, trace))  # type: ignore[union-attr]
                else:
                    held = None
                    break
            if held is not None:
                key = ("backward", head, keep_graph, *held)
                memo = trace.state.next.get(key)
                if memo is not None and memo.reads.isdisjoint(trace.freed):
                    replay(trace, memo, leaves)
                    return True
    start = trace.state
    entered = len(trace.arrays)
    fresh = {id(t._grad): t for t in trace.sources.values() if t._grad is not None}
    roots = [(gradient_edge(root), ones_like(root._v))]
    task = GraphTask(roots, keep_graph=keep_graph, create_graph=False)
    task.run()
    if not task.plain or task.numbered or local.trace is not trace:
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
    if key is None or reached != head:
        return True
    start.next[key] = Memo(
        trace.state,
        tuple((g._v, id(g) in fresh) for t, g in leaf_effects),
        tuple((_place(trace, r), g._v) for kind, r, g in task.effects if kind == "retain"),
        frozenset() if keep_graph else frozenset(task.passed),
        frozenset(filter(active_saves, task.passed)),
        arrays,
    )
    return True


def is_undisturbed(trace: Trace) -> bool:
    """Whether nothing but nodes and tensors has a say in a pass that is walked now."""
    if local.turned or local.watch is not None or not local.grad_layout or not local.mode.plain:
        return False
    if trace.hooked or trace.frames or trace.duals or trace.elsewhere or trace.silent:
        return False
    return not (trace.detached or trace.retains or over_budget(trace))


def _is_older(source: Any) -> bool:
    """Whether the graph goes on from here to nodes of earlier programs."""
    return type(source) is Source


def _retained(trace: Trace) -> bool:
    """Whether a retained gradient is there already: another would be added to it."""
    return any((t := r()) is not None and t._grad is not None for r in trace.retains.values())


def _place(trace: Trace, holder: Any) -> Any:
    return next(k for k, r in trace.retains.items() if r is holder)


def is_plain(leaf: Any) -> bool:
    """No hooks, and a gradient that nobody else looks at."""
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


def replay(trace: Trace, memo: Memo, leaves: list[Any]) -> None:
    trace.state = memo.state
    trace.arrays += memo.arrays
    new, kind = object.__new__, inputs._tensor_class
    refs = trace.refs
    for leaf, (value, in_place) in zip(leaves, memo.grads, strict=True):
        if in_place:
            bump(leaf._grad)
            rebind(leaf._grad, value)
        else:
            leaf._grad = grad = new(kind)
            grad._v = value
            grad._trace = trace
            refs.append(ref(grad))
    for place, grad_value in memo.retained:
        holder = trace.retains[place]()
        if holder is not None:
            holder._grad = make(grad_value, trace)
    trace.freed |= memo.freed
