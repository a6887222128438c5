"""Memory that tensors share, as far as a replayed call must know of it."""

from __future__ import annotations

from typing import Any


def is_shared(t: Any) -> bool:
    """Tell whether somebody holds a tensor that shares memory with this one."""
    if not t._shares or t._store is None:
        return False
    others = [m for r in t._store.members if (m := r()) is not None and m is not t]
    return any(m is not t._store.cell for m in others)


def sharers_of(t: Any) -> list[Any]:
    """List the tensors that a view or a detached tensor holds: what it shares memory with."""
    found = [] if t._viewed is None else [t._viewed[0]]
    if t._shares and t._store is not None:
        found += [x for x in (t._store.cell, t._base_) if x is not None]
    return found


def memory_of(t: Any) -> int:
    """Return what is equal for tensors that share memory."""
    if t._viewed is not None:
        return memory_of(t._viewed[0])
    return id(t._store) if t._shares and t._store is not None else id(t)
