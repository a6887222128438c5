"""The arrays of operands that are computed with at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from ..._core.trie import EXTERNAL, LEAF
from ..._storage.host_arrays import as_numpy, data_of
from .template import DTYPES, MOST

NUMBERS = frozenset({int, float})


def arrays_of(operands: Sequence[Any]) -> list[Any] | None:
    """Return the arrays of tensors, and numbers as they are; None if one is not to be had."""
    arrays: list[Any] = []
    for t in operands:
        if type(t) in NUMBERS:
            arrays.append(t)
            continue
        value = t._v
        if value.index >= 0 or value.numel > MOST or value.dtype not in DTYPES:
            return None
        if t._stale is not None or t._duals is not None or value.device is not None:
            return None
        if value.inference or value.requires_grad and value.role not in (LEAF, EXTERNAL):
            return None
        array: Any = shared_data_of(t) if t._shares else t._array
        if array is None:
            return None
        arrays.append(as_numpy(array))
    return arrays


def shared_data_of(t: Any) -> np.ndarray | None:
    """Return the data of a tensor at rest that shares memory; None if they are not to be had."""
    if t._viewed is not None:
        root, lens = t._viewed
        if type(root) is ref or lens is not None and root._v.index >= 0:
            return None
    elif t._viewers is None and (t._store is None or t._store.cell._trace is not None):
        return None
    return data_of(t, wait=True)
