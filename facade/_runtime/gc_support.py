"""The garbage collector finds cycles of the user's that lead through a pending program.

A trace holds the graph's nodes that somebody asked for until it is cut, since it does not know
when a tensor dies. A cycle through a node's hook, or through what a Function's `ctx` holds, would
outlive a `gc.collect()` so. For the time of a full collection each tensor and each node holds those
that it leads to, and the trace none; those that are still there after it are the trace's again.
"""

from __future__ import annotations

import gc
import sys
from typing import Any
from weakref import ref

from .._autograd.graph.reachable import onward
from .._core.trie import LEAF, State, Trace, Value, local
from .._tracing.inputs import Source

_HELD = "_held_while_collecting"
# Of a node: trace, state or value, itself, output. Of a leaf: -1 for the output.
_loose: list[tuple[Any, Any, Any, Any]] = []
_holding: list[Any] = []  # references to the tensors that hold their nodes


def _around(phase: str, info: dict[str, int]) -> None:
    if info["generation"] < 2 or sys.is_finalizing():
        return
    trace = getattr(local, "trace", None)  # none while the thread's recorder is being made
    if phase == "stop":
        _hold_again()
    elif trace is not None and not trace.graph.weak and not _at_work(2):
        _let_go(trace)


def drop_unreached() -> None:
    """Drop leaves and nodes that only the pending program holds, for a caller's caller."""
    if not (local.trace.graph.weak or _loose or _at_work(3)):
        _let_go(local.trace)
        _hold_again()


def _at_work(depth: int) -> bool:
    """Return whether the library is on the stack: the collector may come amid any of its lines."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "leafax":
            return True
        frame = frame.f_back
    return False


def _let_go(trace: Trace) -> None:
    sources = [(v, s) for v, s in trace.sources.items() if type(s) is Source or v.role == LEAF]
    if not (trace.graph.grad_fns or sources):
        return
    held: dict[Any, list[Any]] = {}  # what an edge or a state leads to
    for t in trace.living():
        edge = (t._stale if t._stale is not None else t._v).edge
        if edge is not None and trace.sources.get(edge) is not t:  # a leaf leads to itself
            t.__dict__[_HELD] = _led_to(trace, edge, held)
            _holding.append(ref(t))
    nodes = list(trace.graph.grad_fns.items())
    for state, node in nodes:
        node.led_to = _led_to(trace, state, held)
    trace.graph.grad_fns.clear()
    for state, node in nodes:
        _loose.append((ref(trace), state, ref(node), None))
    for value, source in sources:
        del trace.sources[value]
        is_leaf = value.role == LEAF
        kept = source if is_leaf else source._node
        _loose.append((ref(trace), value, ref(kept), -1 if is_leaf else source._out))


def _led_to(trace: Trace, start: Value, held: dict[Any, list[Any]]) -> list[Any]:
    """Collect the nodes that an edge leads to, in nested lists that are made once each."""
    if start in held:
        return held[start]
    first = held[start] = []
    stack: list[Any] = [start]
    while stack:
        place = stack.pop()
        here = held[place]
        if isinstance(place, State):
            here.append(trace.graph.grad_fns.get(place))
            further: list[Any] = [v.edge for v in place.operands if v.edge is not None]
        else:
            here.append(trace.sources.get(place))
            further = onward(trace, place)
        for other in further:
            if other not in held:
                held[other] = []
                stack.append(other)
            here.append(held[other])
    return first


def _hold_again() -> None:
    # All that is there first: of some nodes only what is taken apart here knows.
    found = [(r(), place, node(), out) for r, place, node, out in _loose]
    tensors = [r() for r in _holding]
    _loose.clear()
    _holding.clear()
    for trace, place, node, out in found:
        if trace is None or node is None:
            continue
        if out is None:
            trace.graph.hold(place, node)
            del node.led_to
        else:
            trace.sources.setdefault(place, node if out < 0 else Source(node, out))
    for t in tensors:
        if t is not None:  # a trace may know a tensor twice
            t.__dict__.pop(_HELD, None)


gc.callbacks.append(_around)
