"""Integers that were looked at: Python works with them from then on, so they lie on the host."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from .._core.locks import sharing
from .._storage.host_arrays import data_of, read_through
from .rule import memory_of

MOST = 4096  # elements


def keep_on_host(t: Any) -> None:
    """Keep a tensor of integers at rest where it was looked at, with all that share its memory."""
    lens: Any = ()
    holder, sharers = t, t._viewers
    if t._viewed is not None:
        holder, lens = t._viewed
        if lens is None or type(holder) is ref:
            return
        sharers = holder._viewers
    elif t._shares and sharers is None and t._store is not None:
        holder, sharers, lens = t._store.cell, t._store.members, t._lens
    value = holder._v
    if value.numel > MOST or holder._trace is not None:
        return
    if value.dtype.kind != "i" and value.dtype != np.uint8:  # a generator's words are a program's
        return
    if memory_of(holder) is not None:
        return
    data = data_of(holder, wait=True)
    if data is None or read_through(data, lens) is None:
        return
    with sharing:
        holder._array = np.array(data)
        for sharer in sharers or ():
            other = sharer()
            if other is not None and other is not holder:  # a view is read from there
                detached = other._viewed is not None and other._viewed[1] is None
                other._array = holder._array if detached else None
