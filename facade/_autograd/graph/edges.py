"""The autograd graph: where the gradient of a value goes, and which node made a tensor.

While a trace runs its graph is in the trie, and nodes are made when someone asks for them; at a
cut `saved_residuals.py` writes out what a later backward may need.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import ref

from ..._core.gradient_graph import graph
from ..._core.locks import sharing
from ..._core.trie import LEAF, NODE, NOWHERE, State, Trace, Value, local
from ..._rules.node_names import node_name, qualified
from ..._storage.enter import enter
from ..._tracing.inputs import refuse_lost
from ..._tracing.no_grad_views import ambiguous
from .accumulate_grad import AccumulateGrad
from .node import Node


def accumulator(t: Any) -> AccumulateGrad:
    """Get the one `AccumulateGrad` of a leaf."""
    node = t._accumulator() if t._accumulator is not None else None
    if node is None:
        with sharing:  # two threads that walk one graph must find the same nodes
            node = t._accumulator() if t._accumulator is not None else None
            if node is None:
                node = AccumulateGrad(t)
                t._accumulator, t._eventful = ref(node), True
    return node  # type: ignore[no-any-return]


def give_new_accumulator(leaf: Any) -> None:
    """Give `leaf`, which is about to get other memory, another `AccumulateGrad` from now on.

    Graphs that were recorded before keep the one that they have. Their program runs first: its
    values know their leaf as the tensor only.
    """
    trace = local.trace
    if trace.bulk or any(t is leaf for t in trace.sources.values()):
        local.runner.cut("a leaf that gets other memory")
    node = leaf._accumulator() if leaf._accumulator is not None else None
    if node is not None:
        node.left = leaf._v.resting
        local.turned = True
    leaf._accumulator = None


def edge_of(trace: Trace, value: Value) -> Any:
    """Find where the gradient of `value` goes: `(node, output number)`, or None."""
    if not value.requires_grad:
        return None
    edge = value.edge
    if edge is None:  # a view made without grad mode of a tensor that requires grad
        return None
    if edge.role == NODE:
        return (node_of(trace, edge.state), edge.out)
    source = trace.sources[edge]
    if edge.role == LEAF:
        return (accumulator(source), 0)
    if source._node is None:  # another thread's trace has it pending
        return gradient_edge(source)
    return (source._node, source._out)


def node_of(trace: Trace, state: State) -> Node:
    """Get the node of a state of `trace`; the same object as long as somebody holds it."""
    node = trace.graph.node(state)
    if node is None:
        made = state.node_class
        if made is None:
            made = state.node_class = node_class(node_name(state))
        with sharing:
            node = trace.graph.node(state)
            if node is None:
                node = made(trace, state)
                trace.graph.hold(state, node)
    return node  # type: ignore[no-any-return]


@cache
def node_class(name: str) -> type[Node]:
    """Get the class of nodes of this name."""
    members = {"__slots__": (), "__module__": "torch.autograd", "_name": qualified(name)}
    return type(name, (Node,), members)


def grad_fn(t: Any) -> Any:
    """Get the graph node that made `t`, None for leaves."""
    if t._stale is not None:
        renew_history(t)
    value = t._v
    if value.role <= LEAF:
        return None
    if value.index >= 0 and t._trace.outcome.failure is not None:
        refuse_lost(t)
    if value.index >= 0 and not t._trace.outcome.done:
        edge = edge_of(t._trace, value)
        return edge[0] if edge is not None else None
    return t._node


def renew_history(t: Any) -> None:
    """Give a tensor whose storage was written to its present value and history.

    Raises:
      RuntimeError: for a view that was made in a way that forbids such writes.
    """
    if has_no_history(t):
        raise RuntimeError(ambiguous(t, "its base or another view of its base has been"))
    enter(t, local.trace)


def has_no_history(t: Any) -> bool:
    """Tell whether nobody can tell the history of a stale view, since of how it was made."""
    base = t._base_
    return bool(t._creation) and base is not None and (base._tracked or t._stale.role > LEAF)


def gradient_edge(t: Any) -> tuple[Any, int]:
    """Find `(node, output number)` at which gradients for `t` arrive."""
    fn = grad_fn(t)
    if fn is None:
        return accumulator(t), 0
    value = t._v
    if value.index >= 0 and not t._trace.outcome.done:
        return edge_of(t._trace, value)  # type: ignore[no-any-return]
    return fn, t._out


def true_edge(t: Any) -> tuple[Any, int]:
    """Give `gradient_edge(t)` of a tensor that gradients reach.

    Raises:
      AssertionError: for a view that was made without grad mode.
    """
    fn = grad_fn(t)
    if t._tracked and fn is None and t._v.role == NOWHERE:
        raise AssertionError("Expected gradient function to be set")
    # PyTorch finds a leaf's node by a view of it.
    if fn is None and (local.mode.inference or t._v.inference):
        raise AttributeError("'NoneType' object has no attribute 'next_functions'")
    return gradient_edge(t)


def retain(t: Any, edge: Value, trace: Trace) -> None:
    """Make `t` hold the gradient that reaches `edge`, a value of the running trace."""
    key = ("retain", edge)
    after = trace.state.next.get(key)
    if after is None:
        after = trace.state.next[key] = State(trace.state, None, trace.state.mode)
    trace.state = after
    trace.graph.retains[(edge.state, edge.out)] = ref(t)


def unretain(t: Any) -> None:
    """Take `t` off the node where it retained its gradient."""
    trace = t._trace
    if trace is not None:
        for place, holder in list(trace.graph.retains.items()):
            if holder() is t:
                del trace.graph.retains[place]
    node = t._node
    if node is None and t._stale is None:  # written to in no_grad since an earlier program
        node = grad_fn(t)
    if node is not None and node.retains:
        node.retains = [(k, r) for k, r in node.retains if r() is not t]


def retain_at(t: Any, node: Any, out: int) -> None:
    """Make `t` retain the gradient of this node's output from now on."""
    unretain(t)
    node.retains = [*node.retains_of(), (out, ref(t))]


def node_on_leaving(trace: Trace, value: Value) -> Node:
    """Get the node for a tensor that leaves the trace."""
    assert value.edge is not None
    return node_of(trace, value.edge.state)


def edge_from(t: Any) -> Any:
    """Find `(node, output number)` for gradients of `t`; None if it needs none."""
    if not t._tracked or t._leaf and t._v.role == NOWHERE:  # a view without a history
        return None
    return gradient_edge(t)


graph.edge_of, graph.retain = edge_of, retain
graph.retain_at, graph.unretain = retain_at, unretain
