"""Remembered backward passes through graphs that cuts wrote out.

A loss that is looked at before `backward()` leaves its graph in nodes that hold what their
gradients read. What a pass through them records follows from how they hang together, from what
the tensors that they saved are in the running trace by now, and from which leaves hold a gradient.
So it is a step like those of `replay_backward`, with a key that the nodes tell; the tensors enter
in the order in which they did when the pass was walked.
"""

from __future__ import annotations

from typing import Any

from ..._core.locks import running, sharing
from ..._core.trie import Trace, Value, local
from ..._dispatch.macro_steps import MacroStep, is_uncut
from ..._rules.saved_columns import saved_places
from ..._storage.data_writes import wrote_silently
from ..._tracing.inputs import list_inputs
from ..._tracing.novelty import is_unrepeated, note, note_met, watched
from ..engine.complex_phase_checks import WATCHED
from ..engine.task import GraphTask, accumulating
from ..graph.edges import gradient_edge
from ..graph.node import Node
from ..graph.saved_value import Saved
from .pass_at_once import accumulate, gradients, is_small
from .replay_backward import Gradients, held_gradients, is_undisturbed, ones_like, replay


class _Graph:
    """Graph of a root, where nothing but the nodes themselves takes part.

    Attributes:
      nodes: of ops, the first is the root.
      key: how they hang together, and what they save.
      ends, leaves: what gradients are added at, and the tensors there.
      tensors, arrays: what the nodes saved, and arrays that their op left for its gradient.
      since: the `serial` of the first trace that recorded one of the nodes.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.key: tuple[Any, ...] = ()
        self.ends: list[Any] = []
        self.leaves: list[Any] = []
        self.tensors: list[Any] = []
        self.arrays: list[Any] = []
        self.since: float = 0


def run(root: Any, keep_graph: bool) -> bool:
    """Accumulate the gradients of `root`; False, with nothing done, if more takes part."""
    trace = local.trace
    if not is_undisturbed(trace):
        return False
    edge = gradient_edge(root)
    graph = _graph(edge[0], trace)
    if graph is None or wrote_silently(graph.since):
        return False
    with accumulating, sharing:
        if running or trace.inside is not None:
            return False
        if any(not leaf._tracked or leaf._interior() for leaf in graph.leaves):
            return False
        held = held_gradients(graph.leaves, trace)
        if held is None:
            return False
        first: dict[int, int] = {}
        same = [first.setdefault(id(t), k) for k, t in enumerate(graph.tensors)]
        values = [t._v for t in graph.tensors]
        key = ("kept", keep_graph, edge[1], graph.key, *same, *values, *held)
        one = ones_like(root._v)
        operands = [*graph.tensors, *graph.arrays, one._array]
        step = trace.state.next.get(key)
        if step is not None:
            if watched:
                note_met()
            if not is_uncut(step.state) or not step.take(trace, operands):
                return False
            for node in graph.nodes if not keep_graph else ():
                node.free()
            replay(trace, step, [graph.leaves[i] for i in step.effects.places])
            return True
    note(key)
    if is_unrepeated() and is_small(graph.nodes, graph.leaves):
        if _compute_at_once(root, graph, keep_graph):
            return True
        if local.trace is not trace:
            return False
    start, arrays, nbytes = trace.state, len(trace.arrays), trace.nbytes
    before = {id(t._grad) for t in graph.leaves if t._grad is not None}
    task = GraphTask([(edge, one)], keep_graph=keep_graph, create_graph=False)
    task.run()
    # A saved number is not `plain`, but is looked for among what the nodes hold.
    if task.numbered or local.trace is not trace:
        return True
    if len(task.reached) != len(graph.nodes) + len(graph.leaves):
        return True
    inputs = _inputs(trace, arrays, operands)
    effects = [(leaf, grad) for _, leaf, grad in task.effects]
    places = {id(leaf): i for i, leaf in enumerate(graph.leaves)}
    if inputs is not None and all(id(leaf) in places for leaf, _ in effects):
        grads = tuple((grad._v, id(grad) in before) for _, grad in effects)
        given = Gradients(grads, tuple(places[id(leaf)] for leaf, _ in effects))
        start.next[key] = MacroStep(trace.state, inputs, trace.nbytes - nbytes, given)
    return True


def _compute_at_once(root: Any, graph: _Graph, keep_graph: bool) -> bool:
    """Compute the gradients of `root` now; False, with at most a cut made, if NumPy cannot."""
    edge = gradient_edge(root)
    if any(node.trace is not None for node in graph.nodes):
        local.runner.cut(_NEW)
        edge = gradient_edge(root)
        again = _graph(edge[0], local.trace)
        if again is None or any(node.trace is not None for node in again.nodes):
            return False
        graph = again
    if any(t._array is None for t in graph.tensors):
        return False
    found = gradients(*edge, graph.nodes, ones_like(root._v)._array)
    if found is None:
        return False
    for node in graph.nodes if not keep_graph else ():
        node.free()
    accumulate(graph.ends, found)
    return True


_NEW = "backward() through a graph that hardly comes again"


def _graph(root: Any, trace: Trace) -> _Graph | None:
    """Return the graph of a root; None if it is not plain, or what it saved was written to."""
    graph = _Graph()
    places: dict[Any, int] = {}  # negative for leaves
    edges: list[Any] = []
    serials: list[float] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node in places:
            continue
        if node.accumulates:
            if node.left is not None or node.hooked():
                return None
            graph.ends.append(node)
            graph.leaves.append(node.variable)
            places[node] = -len(graph.leaves)
            continue
        if not isinstance(node, Node) or not _is_plain(node, trace):
            return None
        places[node] = len(graph.nodes)
        graph.nodes.append(node)
        edges.append(node.next_edges())
        serials.append(node.graph_order[0])
        stack += [e[0] for e in edges[-1] if e is not None]
    if not serials:
        return None
    graph.since = min(serials)
    key: list[Any] = []
    for node, ends, serial in zip(graph.nodes, edges, serials, strict=True):
        key += (node.state, serials[0] - serial, node.trace is None)
        key += [None if e is None else (places[e[0]], e[1]) for e in ends]
        if node.trace is None:
            if node.saved:
                graph.tensors += [saved.tensor for saved in node.saved.values()]
            if node.residual is not None:
                graph.arrays += node.residual[1]
    for t in graph.tensors:
        if t._shares or t._array is None and t._trace is not trace:
            return None
    graph.key = tuple(key)
    return graph


def _is_plain(node: Node, trace: Trace) -> bool:
    """Tell whether a node's gradient is made of what it saved, as it was, and of nothing else."""
    if node.packed or node.hooked() or node._number is not None or node.frame is not None:
        return False
    if node.trace is not None:
        return node.trace is trace and not node.is_freed() and not node.retains_of()
    if node.freed or node.retains or getattr(node.state.call, "op", None) in WATCHED:
        return False
    saved = node.saved or {}
    for _, index in saved_places(node.state):
        if index not in saved:
            return False
    for s in saved.values():
        if not _is_as_it_was(s):
            return False
    return True


def _is_as_it_was(saved: Saved) -> bool:
    if saved.detached or saved.vc is not None and saved.vc[0] != saved.version:
        return False
    base = None if saved.of is None else saved.of()
    if base is not None and base._shares:  # writes to it may reach what was saved
        return False
    holder = None if saved.holder is None else saved.holder()
    # One that was detached since makes the engine complain.
    if holder is None:
        return True
    own = saved.copied or not holder._shares
    return bool(own and (holder._tracked or not saved.tensor._tracked))


def _inputs(
    trace: Trace, first: int, operands: list[Any]
) -> tuple[tuple[int, Value | None], ...] | None:
    """Return which operands the trace's inputs are; None if one is from elsewhere.

    Args:
      first: the first input to look for.
      operands: tensors, and arrays that enter as they are.
    """
    values = list_inputs(trace)[first:]
    places = {t._v: i for i, t in enumerate(operands) if getattr(t, "_trace", None) is trace}
    raw = {id(a): i for i, a in enumerate(operands)}
    found: list[tuple[int, Value | None]] = []
    for value, array in zip(values, trace.arrays[first:], strict=True):
        if value in places:
            found.append((places[value], value))
        elif id(array) in raw:
            found.append((raw[id(array)], None))
        else:
            return None
    return tuple(found)
