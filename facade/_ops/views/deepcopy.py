"""`copy.deepcopy` of tensors that share memory: their copies share a copy of all of it."""

from __future__ import annotations

from typing import Any

from ..._core.grad_modes import no_grad
from ..._storage.shared_storage import of_mode
from ..._storage.write import written_once
from ..creation.storage_objects import UntypedStorage


def copied(t: Any, memo: dict[Any, Any]) -> Any:
    """Copy `t` to memory of its own, in the layout that it has.

    Args:
      memo: of the deep copy. Tensors on one memory get copies on one memory, as in PyTorch.
    """
    if t.is_conj() or t.is_neg():
        return t.detach().clone()
    if not t._shares or t._store is None:
        return written_once(t.detach().clone())
    memory = UntypedStorage(t)
    copies = memo.setdefault("leafax", {})
    key = memory.data_ptr()
    if key not in copies:
        # Whoever holds the memory is kept as long as the memo is, so that its number stays its own.
        copies[key] = t, of_mode(memory.whole(t.dtype).detach().clone())
    return placed(copies[key][1], t.dtype, t.storage_offset(), tuple(t.shape), t.stride())


def placed(flat: Any, dtype: Any, offset: int, shape: Any, strides: Any) -> Any:
    """Return a tensor that is no view of `flat`, in its memory."""
    if flat.dtype is not dtype:
        flat = UntypedStorage(flat).whole(dtype)
    with no_grad():
        return flat.new_empty(0).set_(flat, offset, shape, strides)
