"""The rule by which an op is computed at once: its operands are small and at rest on the host.

A number that a script reads, a row that it writes, a list that grows: recorded, each would be a
program of its own, as such scripts never do the same twice. NumPy computes them where they lie, and
views and writes go to the same memory. What is pending or on a device, needs a gradient, or was
taken by a program already stays with programs: the step of a training loop is recorded as ever.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.transformation import transformation

from .._core.transforms_running import active
from .._core.trie import State, Trace, local
from .._storage.host_arrays import read_through
from .._tracing import inputs

_ndarray = np.ndarray


def is_free() -> bool:
    """Return whether ops may be computed at once, because no mode has to know of them.

    `local.cuts.at_once` turns it off for the thread.
    """
    mode, cuts = local.mode, local.cuts
    if not mode.plain or mode.inference or mode.anomaly or local.vmap is not None:
        return False
    if not cuts.at_once or cuts.capture is not None or cuts.uncut or cuts.aside or local.opaque:
        return False
    if local.settings.view_replay or local.autograd.guard is not None or active.depth:
        return False
    return local.trace.inside is None and transformation() is None


def scratch_trace() -> Trace:
    """Return a trace to try an op on, in a trie of its own: the thread's knows what it recorded."""
    return Trace(State(None, None, local.mode))


def is_plain(t: Any) -> bool:
    """Return whether `t` has no user's class, no tangents, and no write that it has not seen."""
    return type(t) is inputs._tensor_class and t._stale is None and t._duals is None


def leave_to_programs(t: Any) -> None:
    """Mark the memory of a tensor as a program's, which it will be: what modules hold is."""
    array = t.__dict__.get("_array")
    if type(array) is _ndarray:
        array.flags.writeable = False


def memory_of(t: Any) -> np.ndarray | None:
    """Return the memory of a tensor on the host that no program took; None of other tensors.

    All that share it read and write the same memory. A program that takes it marks it as read-only
    (`_core/host_transfer.py`): what is written from then on is recorded.
    """
    value = t._v
    if value.index >= 0 or value.requires_grad or value.inference or not is_plain(t):
        return None
    array = t._array
    if not t._shares:
        return array if type(array) is _ndarray and array.flags.writeable else None
    whole, lens = array, ()
    if t._viewed is not None:
        root, lens = t._viewed
        if lens is None:
            lens = ()  # it was detached, and has the array
        elif type(root) is ref:
            return None
        else:
            whole = root._array
    elif t._viewers is None and t._store is not None:
        whole, lens = t._store.cell._array, t._lens
    if type(whole) is not _ndarray or not whole.flags.writeable:
        return None
    if not lens:
        return whole
    return array if type(array) is _ndarray else read_through(whole, lens)
