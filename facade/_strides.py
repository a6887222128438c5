"""Strides: JAX arrays have none, so what PyTorch would answer is worked out from the views."""

from __future__ import annotations

from typing import Any

from leafax.functional import VIEW_RULES, contiguous_strides


def layout(t: Any) -> tuple[tuple[int, ...], int]:
    """Strides and storage offset of `t`, by following its lens from the storage."""
    if t._store is None or not t._lens:
        return tuple(contiguous_strides(tuple(t._v.shape))), 0
    shape = tuple(t._store.cell._v.shape)
    strides, offset = tuple(contiguous_strides(shape)), 0
    for op, args, kwargs in t._lens:
        rule = VIEW_RULES.get(op.name)
        found = rule(shape, strides, offset, *args, **kwargs) if rule is not None else None
        if found is None or isinstance(found, list):
            return tuple(contiguous_strides(tuple(t._v.shape))), 0
        shape, strides, offset = found
    return tuple(strides), int(offset)


def stride(t: Any) -> tuple[int, ...]:
    return layout(t)[0]


def offset(t: Any) -> int:
    return layout(t)[1]


def is_contiguous(t: Any) -> bool:
    expected = 1
    for n, s in zip(reversed(tuple(t._v.shape)), reversed(stride(t)), strict=True):
        if n == 0:
            return True
        if n != 1 and s != expected:
            return False
        expected *= n
    return True
