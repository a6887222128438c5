"""First gradients of leaves: in the dtype and the memory that `.grad` has."""

from __future__ import annotations

from typing import Any

from ..._core.dtypes import of
from ..._core.memory_format import contiguous_format
from ..._core.trie import NOWHERE, local, resting
from ..._rules.strides.layouts import is_dense
from ..._storage.autograd_roles import alias, spread
from ..._storage.enter import enter
from ..._storage.shared_storage import detach
from ..._storage.strides import stride
from ..._tracing.inputs import make
from ..graph.grad_dtype import wanted


def in_shape_of(leaf: Any, grad: Any) -> Any:
    """Bring the first gradient into the shape of a leaf that changed, copied if strides differ.

    Raises:
      RuntimeError: if it cannot be.
    """
    return grad if stride(grad) == stride(leaf) else copied_like(leaf, grad)


def copied_like(leaf: Any, grad: Any) -> Any:
    """Copy `grad` into memory that lies as the leaf does."""
    return leaf.detach().to(grad.dtype, copy=True).copy_(grad)


def in_grad_dtype(leaf: Any, grad: Any, left: Any) -> Any:
    """Cast `grad` to the dtype that the leaf's `grad_dtype` asks for, or to what the leaf was."""
    want = wanted(leaf) if left is None else left.dtype
    if want is None or grad._v.dtype == want:
        return grad
    return grad.to(of(want))


def first_gradient(grad: Any, create_graph: bool, share: bool, strides: Any) -> Any:
    """Make a leaf's `.grad` of its first gradient; with a graph a copy, as `CopyBackwards` says."""
    if share and not create_graph:
        return detach(grad)
    if create_graph and grad._tracked:
        if not is_dense(grad._v.shape, strides):
            return grad.clone(memory_format=contiguous_format)
        return as_own_tensor(grad, False, strides).copy_(grad)
    return as_own_tensor(grad, create_graph, strides)


def as_own_tensor(grad: Any, create_graph: bool, strides: Any = None) -> Any:
    """Make a tensor of its own with the value of `grad`, as `.grad` holds it.

    Args:
      strides: how it lies in memory; None is row by row.
    """
    trace = local.trace
    value = enter(grad, trace)
    if create_graph and value.requires_grad:
        return grad.clone()
    kind = resting(value.aval, False, NOWHERE, local.mode.inference)
    value = alias(trace, value, kind, fresh=True)
    if value.strides is not strides and value.strides != strides:
        value = spread(trace, value, strides if is_dense(value.shape, strides) else None)
    return make(value, trace)
