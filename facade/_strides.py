"""Strides: JAX arrays have none, so what PyTorch would answer is worked out from the views."""

from __future__ import annotations

from functools import cache
from typing import Any

from leafax.functional import TABLE, VIEW_RULES, Layout, Op, contiguous_strides

from ._lens import PICKED
from ._record import apply

# Where these cannot be a view of what they get, PyTorch copies.
COPYING = frozenset({"reshape", "flatten", "ravel"})
_NARROW = TABLE["narrow"].fn


def layout(t: Any) -> Layout:
    """Shape, strides and storage offset of `t`, by following its lens from the storage."""
    if t._store is None or not t._lens:
        return _contiguous(t._v.shape)
    found = _contiguous(t._store.cell._v.shape)
    for op, args, kwargs in t._lens:
        seen = after(op, found, args, kwargs)
        if seen is None:
            return _contiguous(t._v.shape)
        found = seen
    return found


def after(op: Op, base: Layout, args: Any, kwargs: Any) -> Layout | None:
    """The layout of a view of `base`; None if there cannot be such a view (or none is known)."""
    rule = VIEW_RULES.get("narrow" if op.fn is _NARROW else op.name)
    if rule is None:
        return None
    found = rule(base, *args, **kwargs)
    return found[PICKED[op]] if isinstance(found, list) else found  # type: ignore[no-any-return]


def _contiguous(shape: Any) -> Layout:
    return Layout(tuple(shape), tuple(contiguous_strides(tuple(shape))), 0)


def must_copy(op: Op, t: Any, args: Any, kwargs: Any) -> bool:
    """Whether a view op that may copy has to, for `t` is not laid out for a view."""
    if op.name not in COPYING or not t._lens:
        return False
    return after(op, layout(t), args, kwargs) is None


def copied(op: Op, t: Any, args: Any, kwargs: Any) -> Any:
    """The copy that `op` gives where it makes no view; None where it does."""
    if not must_copy(op, t, args, kwargs):
        return None
    return apply(_unsafe(op), apply(TABLE["clone"], t), *args, **kwargs)


@cache
def _unsafe(op: Op) -> Op:
    return Op(op.fn, name=op.name, backward="UnsafeViewBackward0")


def stride(t: Any) -> tuple[int, ...]:
    return layout(t).strides


def offset(t: Any) -> int:
    return int(layout(t).offset)


def is_contiguous(t: Any) -> bool:
    expected = 1
    for n, s in zip(reversed(tuple(t._v.shape)), reversed(stride(t)), strict=True):
        if n == 0:
            return True
        if n != 1 and s != expected:
            return False
        expected *= n
    return True
