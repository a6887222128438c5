"""`x[...]` and `x[...] = y`, as PyTorch reads an index."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.number_fits import check_fits, need_int64
from leafax.functional.program.op import TABLE, Op

from ..._core.dtypes import type_string
from ..._core.handle import Handle
from ..._core.locks import sharing
from ..._core.mask_ops import at, marks
from ..._core.python_data import name_of_type
from ..._core.trie import NOWHERE, local
from ..._core.warn_once import drops_imaginary
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._host.compute import INTEGER
from ..._host.constants import is_pending_constant, put_constant_at_rest
from ..._host.places import read_places, write_places
from ..._host.rule import memory_of
from ..._host.views import element_at_rest
from ..._host.writes import put_at_once
from ..._storage.overlap import check_overlap
from ..creation.from_data import tensor
from ..writes.apply_inplace import apply_inplace, check_inplace
from ..writes.plain_setitem import put_plainly
from .basic import basic, slice_of
from .keys import normalise, without_masks
from .masks import MaskError, check_bool, check_mask, is_mask, places_of

_SELECT = TABLE["select"]
_PLAIN_FILL = TABLE["fill"]
# `fill_` with the number as a tensor, which the graph's nodes show.
_FILL = Op(
    _PLAIN_FILL.fn, name="fill_", backward="FillBackward3", saves=_PLAIN_FILL.saves,
    differentiable=_PLAIN_FILL.differentiable, numbers=_PLAIN_FILL.numbers,
)  # fmt: skip


_INTS = frozenset({int})
_SIMPLE = frozenset({int, slice})  # what an index may hold that means what it says
_STATIC = _SIMPLE | {type(None), type(...)}  # no data are looked at for these


def get(self: Any, index: Any) -> Any:
    """Read `self[index]`."""
    kind = type(index)
    if kind in _STATIC or kind is tuple and _STATIC.issuperset(map(type, index)):
        if self._v.index < 0 or self._v.role == NOWHERE and is_pending_constant(self):
            found = _get_at_rest(self, index, kind)
            if found is not None:
                return found
        return _get_statically(self, index)
    return _get(self, index)


def _get_at_rest(self: Any, index: Any, kind: type) -> Any:
    """Read `self[index]` of a tensor at rest, by ints or a slice; None for what takes more."""
    if kind is slice:
        return slice_of(self, 0, index, False) if self._v.index < 0 and self._v.shape else None
    if kind is not int and (kind is not tuple or not _INTS.issuperset(map(type, index))):
        return None
    put_constant_at_rest(self)
    return element_at_rest(self, (index,) if kind is int else index)


def _get(self: Any, index: Any) -> Any:
    kind, shape = type(index), self._v.shape
    if shape and isinstance(index, Handle) and index._v is INTEGER and local.vmap is None:
        number = int(index)  # type: ignore[call-overload]
        if -shape[0] <= number < shape[0]:
            index, kind = number, int
    if kind is int and shape and -shape[0] <= index < shape[0]:
        out = element_at_rest(self, (index,))
        return apply(_SELECT, self, 0, index) if out is None else out
    if kind is slice and shape:
        return slice_of(self, 0, index, False)  # no `alias`, as PyTorch has it
    keys: Any = index if kind is tuple else None
    places: Any = None
    if keys is None or len(keys) > len(shape) or not _SIMPLE.issuperset(map(type, keys)):
        keys, places = normalise(self, index)
    out, advanced = basic(self, keys, places)
    if not advanced:
        return out if out is not self else apply(TABLE["alias"], self)
    found = read_places(out, advanced)
    if found is not None:
        return found
    op, more = at(TABLE["index"], places_of(out, advanced))
    return apply(op, out, advanced, *more)


_get_statically = in_one_step(_get)


def put(self: Any, index: Any, value: Any) -> None:
    """Write `self[index] = value`."""
    if isinstance(value, _NUMPY_NUMBERS):
        value = value.item()
    number = isinstance(value, (bool, int, float, complex))
    if number:
        _check_number(value, self._v.dtype)
        if isinstance(value, complex) and self._v.dtype.kind not in "cb":
            value = value.real
    elif not isinstance(value, Handle):
        kind = type_string(self._v.dtype)
        raise TypeError(f"can't assign a {name_of_type(value)} to a {kind}")
    if self._v.index < 0 or _fills_constant(self, index, value, number):
        if put_at_once(self, index, value):
            return
    if put_plainly(self, index, value) or index is False:
        return
    if index is True:
        _copy_to(self, self.unsqueeze(0), value, number)
        return
    keys, places = normalise(self, index)
    if self._v.index < 0 and _put_at_rest(self, keys, places, value):
        return
    try:
        if len(keys) == 1 and is_mask(keys[0]) and keys[0].dim():
            if number or value.numel() == 1:  # what the data says is not asked for
                check_mask(self, 0, keys[0])
                _put(self, (keys[0],), value, number)
                return
        with sharing:  # a view that is written to at once: no other thread writes in between
            target, advanced = basic(self, keys, places)
            if not advanced:
                _copy_to(self, target, value, number)
                return
        found = [(dim, k) for dim, k in enumerate(advanced) if k is not None]
        if len(found) == 1 and (number or value.numel() == 1) and marks(found[0][1]):
            check_mask(target, *found[0])  # `masked_fill_` writes it
            check_inplace(target)
            check_bool(found[0][1])
            if not number and value.dtype != self.dtype:
                value = value.to(self.dtype)
        where = places_of(target, advanced)
    except MaskError:  # PyTorch looks at the mask later
        target, _ = basic(self, *without_masks(keys, places))
        check_inplace(target)
        if not number and value.numel() != 1:
            check_overlap(TABLE["index_put"], target, (value,))
        raise
    _put(target, advanced, value, number, where)


def _fills_constant(self: Any, index: Any, value: Any, number: bool) -> bool:
    """Put a constant at rest where it is filled with what is known; return whether it was one."""
    if not _SIMPLE.issuperset(map(type, index if type(index) is tuple else (index,))):
        return False
    return (number or memory_of(value) is not None) and put_constant_at_rest(self)


def _put_at_rest(self: Any, keys: Any, places: Any, value: Any) -> bool:
    """Write at index tensors of data at rest on the host; return whether that was possible."""
    if memory_of(self) is None or not any(isinstance(k, Handle) for k in keys):
        return False
    try:
        target, advanced = basic(self, keys, places)
    except IndexError:  # it is raised where it is recorded
        return False
    return write_places(target, advanced, value)


# NumPy's integers, and those of its other numbers that Python's classes are bases of.
_NUMPY_NUMBERS = (np.integer, np.float64, np.complex128)


def _check_number(value: Any, dtype: Any) -> None:
    if type(value) is int:
        need_int64(value)
    if dtype.kind in "iu":
        check_fits(value, dtype)
    elif value.imag or not -3e38 < value.real < 3e38:  # most numbers fit any other dtype
        halves = dtype.itemsize == 2  # what they cannot hold becomes infinite
        check_fits(value, np.float64 if halves else dtype)


def _put(
    target: Any, indices: tuple[Any, ...], value: Any, number: bool, where: tuple[Any, ...] = ()
) -> None:
    """Write at index tensors; masks among them are those places."""
    if number:
        value = _as_tensor(value, target)
    elif _without_ones(value) != tuple(value.shape):
        value = value.view(_without_ones(value))
    check_inplace(target, local.mode.grad and (target._tracked or value._tracked))
    op, more = at(TABLE["index_put"], where)
    apply_inplace(op, target, indices, value, *((False, *more) if more else ()))


def _copy_to(self: Any, target: Any, value: Any, number: bool) -> None:
    """Write to a view of `self`, or to `self`."""
    if target.dim() == 0 and target is self and (number or value.dim() == 0):  # no broadcast
        target.copy_(_as_tensor(value, self) if number else value)
    elif number or value.dim() == 0:
        apply_inplace(_FILL, target, _as_tensor(value, self) if type(value) is bool else value)
        if not number:
            drops_imaginary(value._v.dtype, self._v.dtype, target._v.numel)
    else:
        if tuple(value.shape) != tuple(target.shape):  # PyTorch strips leading ones
            shape = _without_ones(value)
            value = value.view(shape)
            if shape != tuple(target.shape):
                value = value.expand(tuple(target.shape))
        target.copy_(value)


def _as_tensor(value: Any, like: Any) -> Any:
    return tensor(value, dtype=like.dtype)


def _without_ones(value: Any) -> tuple[int, ...]:
    """Return the shape without the ones that it begins with."""
    shape = tuple(value.shape)
    return shape[next((i for i, n in enumerate(shape) if n != 1), len(shape)) :]
