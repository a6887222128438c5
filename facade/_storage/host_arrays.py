"""The data of tensors at rest, read by NumPy where they lie: no program runs for a slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import jax
import numpy as np

from leafax.functional.execution.confined import is_confined
from leafax.functional.execution.single_ops import on_host
from leafax.functional.ops.shape.dimensions import expand_size, flatten_size
from leafax.functional.program.op import TABLE, Op

from .._core.host_transfer import wait as wait_for
from .._core.locks import sharing

_INTS = {int, type(None)}


def _at(x: Any, dim: int, key: Any) -> Any:
    return x[key, ...] if not dim else x[(slice(None),) * (dim % x.ndim) + (key, ...)]


def _narrow(x: Any, dim: int, start: int, length: int) -> Any:
    start += x.shape[dim] if start < 0 else 0
    return _at(x, dim, slice(start, start + length))


def _slice(
    x: Any, dim: int = 0, start: int | None = None, stop: int | None = None, step: int = 1
) -> Any:
    return _at(x, dim, slice(start, stop, step))


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape) if x.flags.c_contiguous else None  # else it is copied each time


def _squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return x.squeeze()
    dims = dim if type(dim) is tuple else (dim,)
    return x.squeeze(tuple([d for d in dims if x.ndim and x.shape[d] == 1]))


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    return _reshape(x, flatten_size(x.shape, start_dim, end_dim))


def _expand(x: Any, size: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, expand_size(x.shape, size))


def _turned(x: Any) -> Any:
    return np.swapaxes(x, -1, -2) if x.ndim > 1 else None


# How the data are read that a view op sees: functions of the array and the op's arguments.
_READERS: dict[Op, Callable[..., Any]] = {
    TABLE["select"]: _at, TABLE["narrow"]: _narrow, TABLE["slice"]: _slice,
    TABLE["view"]: _reshape, TABLE["reshape"]: _reshape, TABLE["unsqueeze"]: np.expand_dims,
    TABLE["transpose"]: np.swapaxes, TABLE["t"]: np.transpose, TABLE["permute"]: np.transpose,
    TABLE["squeeze"]: _squeeze, TABLE["alias"]: lambda x: x, TABLE["mT"]: _turned,
    TABLE["flatten"]: _flatten, TABLE["expand"]: _expand, TABLE["broadcast_to"]: _expand,
}  # fmt: skip


def is_read(op: Op) -> bool:
    """Return whether NumPy knows how to read what a view op sees."""
    return op in _READERS


def read_like(op: Op, other: Op) -> None:
    """Read a view op on the host as another op with the same arguments is read."""
    _READERS[op] = _READERS[other]


def data_of(t: Any, wait: bool = False) -> np.ndarray | None:
    """Return the data of a tensor at rest where they lie in memory; None if unknown.

    Args:
      wait: for what a program computes still, and for its way from a device; else that is left to
        programs that follow.
    """
    with sharing:
        array, lens = t._array, None
        if array is None and t._shares:
            if t._viewed is not None:
                source, lens = t._viewed
            elif t._store is not None:
                source, lens = t._store.cell, t._lens
            else:
                return None
            if lens is None or type(source) is ref:
                return None
            array = source._array
    if array is None or array.dtype.kind not in "biufc":
        return None
    if not isinstance(array, np.ndarray):
        if isinstance(array, jax.core.Tracer) or not (wait or is_confined() or array.is_ready()):
            return None
        if on_host():
            array = as_numpy(array)
        elif wait:
            array = np.asarray(array)
        else:
            return None
    return read_through(array, lens) if lens else array


def as_numpy(array: Any) -> np.ndarray:
    """Return an array on the host as NumPy's, in the same memory, once it is computed."""
    if type(array) is np.ndarray:
        return array
    wait_for(array)
    # No array of JAX's that keeps one of NumPy's: it could be written over no more.
    return np.asarray(memoryview(array))


def read_through(array: np.ndarray, lens: Any) -> np.ndarray | None:
    """Return the part of an array that a lens sees, in the same memory; None if unknown."""
    found: Any = array
    for op, args, kwargs in lens:
        reader = _READERS.get(op)
        if reader is None or kwargs or not all(map(is_static, args)):
            return None
        found = reader(found, *args)
        if found is None:
            return None
    return found  # type: ignore[no-any-return]


def is_static(x: Any) -> bool:
    """Return whether an argument of a view op is an int, None or a tuple of ints."""
    return type(x) in _INTS or type(x) is tuple and _INTS.issuperset(map(type, x))
