"""Graph nodes that carry a user's notes die with the last tensor that leads to them.

A trace holds the nodes that somebody has asked for until it is cut, since it does not know when a
tensor dies. What `node.metadata` holds is the user's, who may wait for its end: one living tensor
that leads to each such node is watched, and when it dies the nodes that none leads to are let go.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from ..._core.trie import State, Trace, local
from .reachable import onward


def note_node(trace: Trace, state: State) -> None:
    """Note that the node of `state` carries notes from now on."""
    if trace.graph.weak:  # it holds no nodes any more
        return
    if trace.graph.noted is None:
        trace.graph.noted = {}
    if state not in trace.graph.noted:
        trace.graph.noted[state] = None
        _watch(trace)


def _watch(trace: Trace) -> None:
    """Find for each noted node a tensor that leads to it; weaken what none leads to."""
    assert trace.graph.noted is not None
    seen: set[State] = set()
    unwatched = [
        s for s, watcher in trace.graph.noted.items() if watcher is None or watcher() is None
    ]
    if not unwatched:
        return
    for r in trace.refs:
        t = r()
        if t is None or t._trace is not trace:
            continue
        new = _reached(trace, t._stale if t._stale is not None else t._v, seen)
        watcher = None
        for state in unwatched:
            if state in new:
                watcher = watcher or ref(t, _ended(trace))
                trace.graph.noted[state] = watcher
        del t
    dead = [s for s in unwatched if s not in seen]
    if dead:
        for state in dead:
            del trace.graph.noted[state]
        _let_go(trace, seen)


def _ended(trace: Trace) -> Any:
    held = ref(trace)

    def callback(_: Any) -> None:
        trace = held()
        if trace is not None and not trace.outcome.done and trace is local.trace:
            _watch(trace)

    return callback


def _reached(trace: Trace, value: Any, seen: set[State]) -> set[State]:
    """Find the states that gradients of `value` come through, but those `seen`; they are added."""
    new: set[State] = set()
    stack = [value]
    while stack:
        edge = stack.pop().edge
        for state in onward(trace, edge) if edge is not None else ():
            if state not in seen:
                seen.add(state)
                new.add(state)
                stack += state.operands
    return new


def _let_go(trace: Trace, reached: set[State]) -> None:
    """Drop the nodes that no tensor leads to; who holds one still walks on from it."""
    dead = [n for s, n in trace.graph.grad_fns.items() if s not in reached]
    for node in dead:
        node.next_edges()
    for node in dead:
        trace.graph.grad_fns.pop(node.state, None)
