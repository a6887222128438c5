"""Strides: JAX arrays have none, so what PyTorch would answer is worked out from the views."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import Layout, contiguous
from leafax.functional.ops.shape.view_rules import VIEW_RULES
from leafax.functional.program.op import TABLE, Op

from .._core.trie import local
from .._core.view_ops import PICKED
from .._rules.strides import layouts
from .._rules.strides.layouts import laid

# Where these cannot be a view of what they get, PyTorch copies.
COPYING = frozenset({"reshape", "flatten", "ravel"})
_NARROW = TABLE["narrow"].fn


def layout(t: Any) -> Layout:
    """Return shape, strides and offset of `t`, following its lens from the storage."""
    if t._store is None or not t._lens:
        return laid(t._v)
    found = laid(t._store.cell._v)
    for op, args, kwargs in t._lens:
        seen = after(op, found, args, kwargs)
        if seen is None:
            return contiguous(t._v.shape)
        found = seen
    return found


def after(op: Op, base: Layout, args: Any, kwargs: Any) -> Layout | None:
    """Return the layout of a view of `base`; None if there is no such view, or none is known."""
    rule = VIEW_RULES.get("narrow" if op.fn is _NARROW else op.name)
    if rule is None:
        return None
    found = rule(base, *args, **kwargs)
    return found[PICKED[op]] if isinstance(found, list) else found  # type: ignore[no-any-return]


def must_copy(op: Op, t: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a view op that may copy must do so, as no view of `t` is possible."""
    if op.name not in COPYING:
        return False
    return after(op, layout(t), args, kwargs) is None


def stride(t: Any) -> tuple[int, ...]:
    return layout(t).strides


def offset(t: Any) -> int:
    if local.vmap is not None:
        found = local.vmap.storage_offset(t)
        if found is not None:
            return found
    return int(layout(t).offset)


def is_contiguous(t: Any) -> bool:
    return layouts.is_contiguous(layout(t))
