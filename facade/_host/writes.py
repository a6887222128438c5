"""Writes to data at rest on the host, in place.

All tensors that share the memory see them at once, and share a version counter as ever.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.op import Op
from leafax.functional.program.options import may_run_op_by_op

from .._core.handle import Handle
from .._core.locks import sharing
from .._core.run_log import at_once
from .compute import arrays_of, may_be_computed, plan_for
from .plans import MOST
from .rule import is_free, memory_of

_ndarray = np.ndarray
_NUMBER_KINDS = frozenset({bool, int, float})
_CELLS = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "f4", "f8"})  # which NumPy casts to as XLA


def put_at_once(t: Any, index: Any, value: Any) -> bool:
    """Write a number or a tensor on the host to `t[index]`; return whether that was possible.

    Args:
      index: ints, slices and what else NumPy reads as PyTorch does; else nothing is written.
    """
    kind = type(index)
    if kind is not int and kind is not slice:
        if kind is not tuple or not all([type(k) is int or type(k) is slice for k in index]):
            return False
    if not is_free():
        return False
    with sharing:
        memory = memory_of(t)
        if memory is None or not _is_forward(index):
            return False
        return write_part(t, memory, value, index if kind is tuple else (index,))


def _is_forward(index: Any) -> bool:
    for k in index if type(index) is tuple else (index,):
        if type(k) is slice and k.step is not None and not (type(k.step) is int and k.step > 0):
            return False
    return True


def write_part(t: Any, memory: np.ndarray, value: Any, index: tuple[Any, ...]) -> bool:
    """Write a number or a tensor to a part of the memory of `t`; False if a program has to."""
    kind = memory.dtype.kind
    if memory.dtype.str[1:] not in _CELLS:
        return False
    if type(value) in _NUMBER_KINDS:
        if kind in "iu" and type(value) is float and not math.isfinite(value):
            return False
        new: Any = value
    else:
        new = memory_of(value) if isinstance(value, Handle) else None
        if new is None:
            return False
        if new.dtype != memory.dtype:
            if (new.dtype.kind, kind) not in _CAST_ALIKE:
                return False
            with np.errstate(all="ignore"):
                new = new.astype(memory.dtype)
        if t._shares and np.may_share_memory(new, memory):
            part = _part(memory, index)
            if part is None:
                return False
            if _is_same(part, new):
                new = None  # as in `x[i] += 1`
            elif np.may_share_memory(new, part):  # PyTorch refuses it
                return False
    if not _has_one_counter(t):
        return False
    try:
        if new is not None:
            memory[index] = new  # NumPy strips leading ones as PyTorch does
    except (IndexError, ValueError, OverflowError):  # shapes or numbers that do not fit
        return False
    note_write(t)
    return True


def _part(memory: np.ndarray, index: tuple[Any, ...]) -> np.ndarray | None:
    """Return the part of the memory at ints and slices; None for other indices."""
    if any([type(k) is _ndarray for k in index]):
        return None
    try:
        return memory[(*index, ...)]
    except IndexError:
        return None


def _is_same(part: np.ndarray, new: np.ndarray) -> bool:
    mine, own = part.__array_interface__, new.__array_interface__
    same = mine["data"] == own["data"] and part.strides == new.strides
    return bool(same and part.shape == new.shape)


# Kinds of dtypes between which NumPy casts as XLA does: floats are rounded to nearest, integers
# lose their upper bits.
_CAST_ALIKE = frozenset(
    [("f", "f"), ("b", "b"), ("i", "f"), ("u", "f"), ("b", "f"), ("f", "b")]
    + [(a, b) for a in "biu" for b in "biu"]
)


def overlaps(memory: np.ndarray, array: Any) -> bool:
    """Return whether an operand may lie in the memory that is written to."""
    return type(array) is _ndarray and np.may_share_memory(memory, array)


def _has_one_counter(t: Any) -> bool:
    """Return whether all that share the memory count its writes together: `.data` does not."""
    if not t._shares or t._viewed is not None or t._viewers is not None or t._store is None:
        return True
    counter = t._store.vc
    return all([(m := r()) is None or m._vc is counter for r in t._store.members])


def note_write(t: Any) -> None:
    """Count a write to the memory of `t`; who holds a copy of it elsewhere reads anew."""
    at_once.ops += 1
    if not t._shares:
        _bump(t)
        return
    root = t
    if t._viewed is not None:
        root = t._viewed[0]
        root = root() if type(root) is ref else root
    if root is not None and root._viewers is not None:
        _bump(root)
        root._viewers[:] = _read_anew(root._viewers)
        return
    store = t._store  # of what was detached from a tensor that is gone there is none
    if store is None:
        _bump(t)
        return
    store.vc[0] += 1
    store.members[:] = _read_anew(store.members)


def _read_anew(sharers: list[Any]) -> list[Any]:
    """Take from tensors what they hold of the memory on a device; return those that are alive."""
    alive = []
    for sharer in sharers:
        t = sharer()
        if t is not None:
            alive.append(sharer)
            if t._array is not None and type(t._array) is not _ndarray:
                t._array = None
    return alive


def _bump(t: Any) -> None:
    counter = t.__dict__.get("_vc")  # by the attribute a tensor with views would get a storage
    if counter is None:
        t._vc = [1]
    else:
        counter[0] += 1


def write_at_once(op: Op, t: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Apply the in-place variant `op` to a tensor on the host; return whether that was possible."""
    if not may_be_computed(op) or not may_run_op_by_op() or not is_free():
        return False
    with sharing:
        memory = memory_of(t)
        if memory is None or memory.size > MOST or not _has_one_counter(t):
            return False
        given = t, *args
        found = arrays_of(op, given, kwargs)
        if found is None:
            return False
        arrays = found[1]
        if t._shares and any([overlaps(memory, a) for a in arrays[1:]]):
            return False  # they may overlap, which PyTorch refuses
        plan = plan_for(op, given, kwargs, *found)
        if plan is None:
            return False
        try:
            new = plan.run(*arrays)[0]
        except ValueError:
            return False
        if new.shape != memory.shape or new.dtype != memory.dtype:
            return False
        if not memory.flags.writeable:  # what `expand` shows
            return False
        memory[...] = new
        note_write(t)
        return True
