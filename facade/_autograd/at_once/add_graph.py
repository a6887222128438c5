"""The graph of calls that were computed at once, as a cut would have left it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from ..._core.trie import EXTERNAL, LEAF, local, resting
from ..._host.rule import leave_to_programs
from ..._tracing import inputs
from ..._tracing.inputs import from_array
from ..graph.edges import gradient_edge
from ..graph.input_metadata import Edges
from ..graph.saved_value import Saved
from .operands import NUMBERS
from .template import Kept, Template

_LATER = 2.0**-32
# Between what was recorded before in the trace and what will be, in order.
_later = map(_LATER.__mul__, itertools.count(1))


def add_graph(
    template: Template, operands: Sequence[Any], arrays: Sequence[Any], env: list[Any], out: Any
) -> None:
    """Make the nodes of a call, and tie its result to them."""
    trace = local.trace
    serial, depth = trace.graph.serial, trace.state.depth
    made: list[Any] = []
    held: dict[int, Any] = {}  # what stands for operands
    for kind, state, edges, kept in template.nodes:
        node = kind(None, state)
        node._edges = Edges([_edge(e, operands, made) for e in edges])
        node._edges.serial, node._edges.depth = serial, depth + next(_later)
        node.retains = []
        node.saved = {k.place: _save(k, operands, arrays, env, out, made, held) for k in kept}
        made.append(node)
    number, out._out = template.edge
    out._node = made[number]


def _edge(edge: Any, operands: Sequence[Any], made: list[Any]) -> Any:
    if edge is None:
        return None
    if type(edge) is int:
        return gradient_edge(operands[edge])
    return made[edge[0]], edge[1]


def _save(
    kept: Kept, operands: Sequence[Any], arrays: Sequence[Any], env: list[Any], out: Any,
    made: list[Any], held: dict[int, Any],
) -> Saved:  # fmt: skip
    """Save an operand or a result as a cut does, see `saved_residuals.py`."""
    place = kept.operand
    if place >= 0:
        t = operands[place]
        if type(t) in NUMBERS:
            return Saved(from_array(np.asarray(t, kept.value.dtype)), 0, None)
        counter = _counter_of(t)
        tensor = held.get(place)
        if tensor is None:
            tensor = held[place] = _held(t, arrays[place], counter[0])
        return Saved(tensor, counter[0], counter, ref(t), copied=t._shares and tensor is not t)
    tensor = object.__new__(inputs._tensor_class)
    tensor._v, tensor._array, tensor._trace = kept.value, env[kept.number], None
    if kept.counter is None:
        tensor._v = resting(kept.value.aval, strides=kept.value.strides)
        if out._vc is None:
            out._vc = [0]
        return Saved(tensor, 0, out._vc, ref(out))
    if kept.place < 0:
        tensor._v = resting(kept.value.aval, strides=kept.value.strides)
    elif kept.edge is not None:
        edge = _edge(kept.edge, operands, made)
        if edge[0].accumulates:
            tensor = edge[0].variable
        else:
            tensor._node, tensor._out = edge
    if kept.counter < 0:
        return Saved(tensor, 0, None)
    base = operands[kept.counter]
    counter = _counter_of(base)
    return Saved(tensor, counter[0], counter, of=ref(base))


def _held(t: Any, array: Any, version: int) -> Any:
    """Return what stands for an operand: itself if it may, or else a tensor of its array."""
    value = t._v
    if value.role == LEAF:
        return t
    if not (value.requires_grad or t._shares):
        leave_to_programs(t)  # what writes to it from now on gives it another array
        return t
    tensor = object.__new__(inputs._tensor_class)
    tensor._v, tensor._trace = value, None
    tensor._array = array.copy() if t._shares else t._array
    if version:
        tensor._vc = [version]
    if value.role == EXTERNAL:
        tensor._node, tensor._out = t._node, t._out
    return tensor


def _counter_of(t: Any) -> Any:
    """Return the version counter of the memory of a tensor, which counts from now on."""
    viewed = t._viewed
    if viewed is not None and viewed[1] is not None and type(viewed[0]) is not ref:
        t = viewed[0]
    counter = t.__dict__.get("_vc")  # by the attribute a tensor with views would get a storage
    if counter is None:
        counter = t._vc = [0]
    return counter
