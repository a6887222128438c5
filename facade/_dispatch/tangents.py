"""Tangents of tensors: a view of a dual tensor has a view of its tangent."""

from __future__ import annotations

from typing import Any

from .._core.dual_levels import levels_below, recording_levels, set_tangent
from .._core.trie import local
from .record import apply


def get_tangent(t: Any, level: int) -> Any:
    """Return the tangent of `t` at a level, or None; a view has a view of its base's tangent."""
    duals = t._duals
    if duals is not None and level in duals:
        return duals[level]
    base, lens = dual_base(t)
    if base is None or base._duals is None or level not in base._duals:
        return None
    found = view_tangent(base._duals[level], lens, level)
    set_tangent(t, level, found)
    return found


def has_tangent(t: Any) -> bool:
    """Tell if `t` has a tangent of an open level."""
    return any(get_tangent(t, level) is not None for level in local.mode.dual)


def dual_base(t: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the tensor that `t` is a view of in forward mode, and the views that lead to `t`."""
    if t._dual_root is None:
        return t._base_, t._blens
    root, start = t._dual_root
    return (None, ()) if root is None else (root, t._blens[start:])


def view_tangent(tangent: Any, lens: Any, level: int) -> Any:
    """Return the view of a tangent that these view ops make."""
    with recording_levels(levels_below(level)):
        for op, args, kwargs in lens:
            tangent = apply(op, tangent, *args, **kwargs)
    return tangent
