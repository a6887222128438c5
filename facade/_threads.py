"""Tensors that several threads use: how one passes from thread to thread.

Each thread records a program of its own, so a tensor has one *place*: pending in the trace of one
thread, at rest with an array, or read from storage that others share. `sharing` is held by
whoever changes the place of a tensor that others may see (it enters another trace, is written to,
gets a view, leaves a trace that ran), so that a change is seen whole or not at all. Programs run
without it; who needs what another thread is computing waits for `ended`.

The thread in whose trace a tensor is asks no lock: it reads `_v`, then `_trace`. So a tensor that
moves to another trace is first in none.
"""

from __future__ import annotations

import threading
from typing import Any

sharing = threading.RLock()
ended = threading.Condition(sharing)  # a program that was running is done
running: dict[Any, int] = {}  # the traces whose programs are running, and in which threads


def wait_for(t: Any) -> None:
    """Wait until no other thread is computing `t`, or what it is read from; `sharing` is held."""
    while _runs(t) or t._shares and t._store is not None and _runs(t._store.cell):
        ended.wait()


def _runs(t: Any) -> bool:
    if t._array is not None or t._trace is None:
        return False
    here = threading.get_ident()
    return running.get(t._trace, here) != here
