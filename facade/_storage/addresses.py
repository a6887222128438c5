"""Numbers that stand for the addresses of tensors' memory.

JAX arrays have no addresses that last, so pointers are numbers: equal for the same memory, and
apart by the bytes between two elements.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.meta import META


def _memory(t: Any) -> Any:
    """Return an object that all tensors on this memory share."""
    if t._store is not None:
        return t._store.vc
    if t._vc is None:
        t._vc = [0]
    return t._vc


def pointer(t: Any) -> int:
    """Return `data_ptr()` of a tensor, 0 if it has no elements."""
    if not t.numel() or t._v.device is META:
        return 0
    return start_of(t) + t.storage_offset() * t.itemsize  # type: ignore[no-any-return]


def start_of(t: Any) -> int:
    """Return the number that stands for the first byte of the memory of `t`."""
    return id(_memory(t)) << 16


def storage_bytes(t: Any) -> int:
    """Count the bytes of all the memory that `t` is part of."""
    return int(t._v.nbytes if t._store is None else t._store.cell._v.nbytes)
