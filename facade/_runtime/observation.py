"""Observations: a tensor's array is asked for, and what it takes runs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from leafax.functional.program.transformation import transformation

from .._core.faults import check_faults
from .._core.host_transfer import placed
from .._core.locks import sharing
from .._core.run_log import ON_HOST
from .._core.runner import Runner
from .._core.trie import Local, local
from .._host.looks import keep_on_host
from .._storage.enter import enter, was_leaf
from .._storage.host_arrays import data_of
from .._tracing.jax_transforms import refuse_over, value_of
from .._tracing.tracer_checks import refuse_constant
from .cut import cut
from .recomputation import compute, compute_elsewhere, salvage
from .side_programs import evaluate_beside


def observe(t: Any, reason: str) -> Any:
    """Return the array of `t`, running its program; raise data-dependent errors found so far."""
    if local.cuts.capture is not None:
        local.cuts.capture.note_look(reason)
    if local.vmap is not None and t._array is None:
        return local.vmap.observe(t, reason)
    if transformation() is not None:
        return value_of(t, reason)
    if t._array is None and t._shares and (t._viewed is None or t._viewed[1] is None):
        with sharing:
            if t._store is not None and not t._lens:
                t._array = t._store.cell._array  # nothing between the storage and this tensor
    if reason in ON_HOST and (found := _looked_at(t, reason)) is not None:
        return found
    if t._array is None:
        refuse_constant()
        if t._trace is not None and t._trace.outcome.failure is not None:
            array = salvage(t)
            check_faults()
            return array
        refuse_over(t)
        away = t._trace is not None and not t._trace.outcome.done and t._trace is not local.trace
        if local.cuts.aside or (away and t._stale is None):  # what is stale is read anew here
            array = compute(t) if local.cuts.aside else compute_elsewhere(t)
            check_faults()
            return observe(t, reason) if array is None else array
        if not away and (array := evaluate_beside(t, reason)) is not None:
            check_faults()
            return array
        if t._stale is not None and (t._creation or was_leaf(t)):
            t = t.detach()  # its data are there, whatever its history is
        enter(t, local.trace)
        cut(reason, (t,))
        if reason in ON_HOST and (found := _looked_at(t, reason)) is not None:
            return found
    check_faults()
    if reason in ON_HOST and t._v.dtype.kind in "iu":
        keep_on_host(t)
        if (found := _looked_at(t, reason)) is not None:
            return found
    array = placed(t)
    return observe(t, reason) if array is None else array  # if another thread wrote to it just now


def _looked_at(t: Any, reason: str) -> np.ndarray | None:
    """Return the data of `t` on the host, if that needs no program and no transfer; else None."""
    array = t._array
    if type(array) is not np.ndarray and (array is not None or not t._shares):
        return None
    found = data_of(t)
    if found is None:
        return None
    check_faults()
    if not found.flags.writeable and t._v.dtype.kind in "iu":
        keep_on_host(t)
    return np.array(found) if reason == "numpy()" else found


def synchronize() -> None:
    """Run everything that is pending and wait for it; raise data-dependent errors.

    >>> import leafax
    >>> x = leafax.ones(3) + 1
    >>> leafax.synchronize()
    """
    live = local.trace.living()
    cut("synchronize()")
    jax.block_until_ready([t._array for t in live if t._array is not None])
    check_faults()


Local.runner = Runner(cut, observe, compute, compute_elsewhere)
