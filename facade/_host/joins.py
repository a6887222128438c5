"""Tensors at rest that are stacked or joined come to the program as one input.

As PyTorch does, NumPy gathers them at once: `stack([data[i] for i in ix])` is no part of the
training step, whose program would take each slice, and its start, by itself. So are those that an
index picks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.host_transfer import room
from .._core.run_log import at_once
from .._storage.host_arrays import data_of
from .compute import kind_of, tensor_on
from .constants import is_pending_constant, put_constant_at_rest
from .rule import is_free, is_plain

_JOINED: dict[str, Any] = {"stack": np.stack, "cat": np.concatenate}


def joined(name: str, tensors: Sequence[Any], dim: int) -> Any:
    """Stack or join tensors at rest, as a tensor at rest; None where a program must do it."""
    join = _JOINED.get(name)
    if join is None or not tensors or type(dim) is not int or not is_free():
        return None
    if not all(map(is_plain, tensors)):
        return None
    pending = [t for t in tensors if t._array is None and not t._shares]
    if pending and (len(pending) == len(tensors) or not all(map(is_pending_constant, pending))):
        return None
    kind = None
    arrays = []
    for t in tensors:
        if pending:
            put_constant_at_rest(t)
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
        if any(a.ndim != ndim or [*a.shape[:dim], *a.shape[dim + 1 :]] != rest for a in arrays):
            return None
        shape[dim] = sum(a.shape[dim] for a in arrays)
    out = room(tuple(shape), arrays[0].dtype)
    join(arrays, dim, out=out)
    at_once.ops += 1
    return tensor_on(out, kind_of(out.dtype, out.shape))
