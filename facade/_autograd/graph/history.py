"""Histories of tensors that go on outside of the trace: at an output of a node of another kind."""

from __future__ import annotations

from typing import Any

from ..._core.trie import EXTERNAL, LEAF, Value, local, resting
from ..._storage.autograd_roles import alias, keep_edge
from ..._storage.enter import enter
from ..._tracing.inputs import Source, renew_entry


def external(value: Value, node: Any, out: int) -> Value:
    """Send the gradient of `value`, of the running trace, to output `out` of `node`."""
    trace = local.trace
    made = alias(trace, value, resting(value.aval, True, EXTERNAL, value.inference))
    trace.sources[made] = Source(node, out)
    trace.graph.hooked += 1  # no remembered backward knows this node
    return made


def set_history(t: Any, node: Any, out: int) -> Any:
    """Send gradients for `t` to output `out` of `node`, from now on; returns `t`.

    With the end of a leaf's path as `node`, `t` becomes a second handle on that leaf.
    """
    trace = local.trace
    if node.accumulates:
        value = enter(t, trace)
        value = alias(trace, value, resting(value.aval, True, LEAF, value.inference))
        trace.sources[value] = t
        trace.graph.hooked += 1
        t._v, t._trace, t._accumulator = value, trace, lambda: node
        t._eventful = True
        renew_entry(trace, t, value)
        return t
    value = enter(t, trace)
    if node.trace is trace:  # which must not hold a node that leads to it
        value = keep_edge(trace, value, node.state.values[out])
    else:
        value = external(value, node, out)
        t._node, t._out = node, out
    t._v, t._trace = value, trace
    renew_entry(trace, t, value)
    return t
