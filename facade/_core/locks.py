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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

sharing = threading.RLock()
ended = threading.Condition(sharing)  # a program that was running is done
running: dict[Any, int] = {}  # the traces whose programs are running, and in which threads


def wait_for(t: Any) -> None:
    """Wait until no other thread is computing `t`, or what it is read from; `sharing` is held."""
    while _runs(t) or t._shares and t._store is not None and _runs(t._store.cell):
        ended.wait()


@contextmanager
def set_aside() -> Iterator[None]:
    """Hold `sharing` not within the block, which calls the user's code: that may wait for locks
    of its own, which others hold while they wait for this one."""
    lock: Any = sharing
    if not lock._is_owned():
        yield
        return
    held = lock._release_save()  # all levels of it, as `Condition.wait` does
    try:
        yield
    finally:
        lock._acquire_restore(held)


def _runs(t: Any) -> bool:
    if t._array is not None or t._trace is None:
        return False
    here = threading.get_ident()
    return running.get(t._trace, here) != here
