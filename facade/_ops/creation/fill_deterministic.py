"""Values of memory that nothing was written to: zeros, or NaN under deterministic algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._storage.addresses import storage_bytes

#: What `use_deterministic_algorithms` was told: enabled, warn only.
deterministic = [False, False]
fill_uninitialized_memory = [True]  # `torch.utils.deterministic`'s switch


def fills() -> bool:
    """Tell whether new memory is filled with what shows that it was read too early."""
    return deterministic[0] and fill_uninitialized_memory[0]


def filler(dtype: np.dtype) -> Any:
    """Return what new memory of a dtype is filled with: NaN, or the largest integer."""
    if dtype.kind == "b":
        return True
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else float("nan")


def fill_tail(t: Any, before: int) -> None:
    """Fill what `resize_` has added to memory that had `before` bytes."""
    added = (storage_bytes(t) - before) // t.itemsize
    if added > 0:
        tail = t.data.as_strided((added,), (1,), before // t.itemsize)
        tail.fill_(filler(t._v.dtype))
