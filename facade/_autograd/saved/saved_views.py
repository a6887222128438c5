"""Saved tensors that were views: `grad_fn._saved_*` shows them as views again.

A node keeps values, not tensors. A user's own tensor is found while it lives; a view that only the
node knows, such as the `b.t()` in `x @ b.t()`, is made anew from what it was a view of.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..._core.grad_modes import within
from ..._core.trie import Trace, Value, local, resting
from ..._core.view_ops import Lens
from ..._dispatch.record import results
from ..._storage.shared_storage import share
from ..._tracing.inputs import from_array
from ..graph.saved_tensors import find_tensor, tensor_of
from ..graph.value_views import is_view, lens_of


def as_view(node: Any, index: int, tensor: Any) -> Any:
    """Give `tensor`, a node's saved operand `index`, or a view in its place if it was one."""
    if index < 0 or tensor._base_ is not None or tensor._v.inference:
        return tensor
    value = node.state.operands[index]
    if not is_view(value):
        return tensor
    trace = node.trace
    if trace is local.trace and trace is not None:
        return _again(trace, value)
    saved = (node.saved or {}).get(index)
    base = None if saved is None or saved.of is None else saved.of()
    if saved is not None and base is not None and base._vc is saved.vc:
        return share(base, tensor, lens_of(value)[0], view=True)
    return _of_the_past(value, node.next_edges()[index], tensor)


def _again(trace: Trace, value: Value) -> Any:
    """Make the view that is this value of the running trace anew from its base."""
    state = value.state
    above = state.operands[0]
    known = not is_view(above) or find_tensor(trace, above) is not None
    base = tensor_of(trace, above) if known else _again(trace, above)
    with within(state.mode):
        made = results(state.call.op, (base, *state.call.args[1:]), state.call.kwargs, state, trace)
    return made[value.out] if state.call.many else made


def _of_the_past(value: Value, edge: Any, tensor: Any) -> Any:
    """Make a view whose program has run: of the leaf it leads to, or of what it shows in full."""
    lens, value = lens_of(value)
    for _ in lens:
        edge = None if edge is None else edge[0].next_edges()[0]
    if not lens:
        return tensor
    if edge is not None and edge[0].accumulates and edge[0].variable._v.shape == value.shape:
        return share(edge[0].variable, tensor, lens, view=True)
    base = _base(value, lens, tensor)
    return tensor if base is None else share(base, tensor, lens, view=True)


def _base(value: Value, lens: Lens, tensor: Any) -> Any:
    """Make the base that a lens sees as `tensor`, if it sees all of it."""
    if any(op.name in ("conj", "real", "imag") or "view_" in op.name for op, _, _ in lens):
        return None  # other numbers than the base's
    count = value.numel
    seen = np.arange(count).reshape(value.shape)
    with jax.enable_x64(True):
        for op, args, kwargs in lens:
            seen = np.asarray(op.fn(seen, *args, **kwargs))
    places = np.full(count, -1)
    places[seen.reshape(-1)] = np.arange(seen.size)
    if (places < 0).any():
        return None
    with jax.enable_x64(True):
        array = tensor.detach().jax().reshape(-1)[places].reshape(value.shape)
    base: Any = from_array(array)
    base._v, base._vc = resting(value.aval, strides=value.strides), tensor._vc
    return base
