"""Tensors that alone see their memory, as other dtypes than it was made in: they get it plainly.

A file's bytes are read as floats, and then nobody holds the bytes. Else every program would make
floats of them again.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from leafax.functional.program.op import TABLE

_CAST = TABLE["view_dtype"]
_WHOLE = {_CAST, TABLE["reshape"], TABLE["view"], TABLE["alias"], TABLE["flatten"]}


def take_memory(t: Any) -> bool:
    """Make a tensor hold its own array, if it sees all of a memory on the host that no other sees.

    Args:
      t: shares a storage; `sharing` is held.

    Returns:
      True if it holds an array now.
    """
    lens, store = t._lens, t._store
    if not any(op is _CAST for op, _, _ in lens) or not all(op in _WHOLE for op, _, _ in lens):
        return False
    cell = store.cell
    array = _on_host(cell)
    if array is None or t._base_ is not None or t._stale is not None or t._viewers is not None:
        return False
    if array.nbytes != t._v.nbytes or t._v.strides is not None or t._v.dtype.kind not in "biufc":
        return False
    if t._trace is not None and not t._trace.outcome.done:
        return False
    others = [m for m in [m() for m in store.members] if m is not None and m is not t]
    if cell._viewers is not None or others:
        return False
    found = np.array(array).reshape(-1).view(t._v.dtype).reshape(t._v.shape)
    store.let_go(t)
    t._array, t._v, t._trace = found, t._v.resting, None
    return True


def _on_host(cell: Any) -> np.ndarray | None:
    """Return the array of a storage at rest, row by row; None where it is anywhere else."""
    array = cell._array
    if array is None or cell._v.strides is not None or cell._v.device is not None:
        return None
    if type(array) is np.ndarray:
        return array
    if isinstance(array, jax.core.Tracer) or any(d.platform != "cpu" for d in array.devices()):
        return None
    return np.asarray(array)
