"""Tensors at rest that are stacked or joined come to the program as one input.

As PyTorch does, NumPy gathers them at once: `stack([data[i] for i in ix])` is no part of the
training step, whose program would take each slice, and its start, by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.host_transfer import room
from ..._storage.host_arrays import data_of
from ..._tracing.inputs import from_array
from .host_views import is_free, is_plain

_JOINED: dict[str, Any] = {"stack": np.stack, "cat": np.concatenate}


def joined(name: str, tensors: Sequence[Any], dim: int) -> Any:
    """Stack or join tensors at rest, as a tensor at rest; None where a program must do it."""
    join = _JOINED.get(name)
    if join is None or not tensors or type(dim) is not int or not is_free():
        return None
    kind = None
    arrays = []
    for t in tensors:
        if not is_plain(t):
            return None
        value = t._v.resting
        if value is not kind:
            if kind is not None and (name == "stack" or value.dtype != kind.dtype):
                return None
            kind = value
            if value.requires_grad or value.inference or value.strides is not None:
                return None
        array = data_of(t)
        if array is None:
            return None
        arrays.append(array)
    return _joined(name, join, arrays, dim)


def _joined(name: str, join: Callable[..., Any], arrays: list[Any], dim: int) -> Any:
    ndim = arrays[0].ndim + (name == "stack")
    if not -ndim <= dim < ndim or ndim == 0:
        return None
    shape = list(arrays[0].shape)
    dim %= ndim
    if name == "stack":
        shape.insert(dim, len(arrays))
    else:
        rest = shape[:dim] + shape[dim + 1 :]
        if any([*a.shape[:dim], *a.shape[dim + 1 :]] != rest for a in arrays):
            return None
        shape[dim] = sum(a.shape[dim] for a in arrays)
    out = room(tuple(shape), arrays[0].dtype)
    join(arrays, dim, out=out)
    return from_array(out)
