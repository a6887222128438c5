"""The tensors of values that a graph saved: the user's own where they still are what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core.trie import Trace
from ..._tracing.inputs import make
from ..._tracing.leaf_tuples import mark_all_entered
from .saved_value import Saved

if TYPE_CHECKING:
    from .node import Node


def tensor_of(trace: Trace, value: Any) -> Any:
    """Get the tensor of a value of the running trace; a new one if nobody holds one."""
    found = find_tensor(trace, value)
    if found is not None:
        return found
    made = make(value, trace)
    writes = trace.versions.get(value.storage, 0) + value.version
    if writes:  # it is what those left
        made._vc = [writes]
    return made


def find_tensor(trace: Trace, value: Any) -> Any:
    """Find the tensor that holds a value of the running trace, if somebody has it."""
    source = trace.sources.get(value)
    if source is not None and source._v is value:
        return source
    mark_all_entered(trace)
    for r in trace.refs:
        t = r()
        if t is not None and t._v is value and t._stale is None:
            return t
    return None


def original_tensor(saved: Saved) -> Any:
    """Get the tensor that was saved: the user's own, if it still holds what it held."""
    t: Any = None if saved.holder is None else saved.holder()
    kept = saved.tensor
    if t is None or t._stale is not None or saved.now != saved.version:
        return kept
    if t._tracked != kept._tracked or t._v.shape != kept._v.shape:
        return kept
    return t


def is_result(t: Any, node: Node, out: int) -> bool:
    """Tell whether `t` still is what the node made."""
    return t._node is node and t._out == out and t._stale is None
