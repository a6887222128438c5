"""Reads and writes at index tensors and masks, of data at rest on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.locks import sharing
from .._core.run_log import at_once
from .compute import kind_of, tensor_on
from .plans import MOST
from .rule import is_free, memory_of
from .writes import overlaps, write_part


def read_places(t: Any, keys: tuple[Any, ...]) -> Any:
    """Return `t[keys]` as a tensor at rest; None where a program has to read it.

    Args:
      keys: tensors of integers and masks, one a dim or more; None for a whole dim.
    """
    if t._v.index >= 0 or not is_free():
        return None
    memory, arrays = memory_of(t), _arrays(keys)
    if memory is None or arrays is None or memory.dtype.kind not in "biufc":
        return None
    if sum(a.size for a in arrays if type(a) is np.ndarray) * memory[:1].size > 4 * MOST:
        return None
    try:
        found = memory[arrays]
    except (IndexError, ValueError):
        return None
    at_once.ops += 1
    found = np.array(found, order="C", copy=None)
    return tensor_on(found, kind_of(found.dtype, found.shape))


def write_places(t: Any, keys: tuple[Any, ...], value: Any) -> bool:
    """Write a number or a tensor to `t[keys]`; return whether that was possible at once."""
    if t._v.index >= 0 or not is_free():
        return False
    with sharing:
        memory, arrays = memory_of(t), _arrays(keys)
        if memory is None or arrays is None:
            return False
        if any([overlaps(memory, a) for a in arrays]):  # PyTorch may refuse it
            return False
        return write_part(t, memory, value, arrays)


def _arrays(keys: tuple[Any, ...]) -> Any:
    """Return an index of NumPy; None where a key is on no host, or is to be warned of."""
    arrays: list[Any] = []
    for k in keys:
        if k is None:
            arrays.append(slice(None))
            continue
        array = memory_of(k) if hasattr(k, "_v") else None
        if array is None or array.dtype.kind not in "bi":
            return None
        arrays.append(array)
    return tuple(arrays)
