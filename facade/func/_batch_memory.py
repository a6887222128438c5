"""`as_strided` and `new_empty_strided` inside `vmap`: they count in the memory of the batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leafax.functional.ops.shape.strides import Layout

from .._core.vmap_checks import outside_vmap
from .._storage.as_strided_outside import places, reach
from .._storage.strides import layout
from ._aliases import Views, find_alias
from ._level_stack import LevelStack

_REWRITE = (
    "This is not supported inside of vmap, please try to{}rewrite the `as_strided` call as a "
    "sequence of PyTorch view operations"
)


class BatchMemory(LevelStack):
    """Count elements in the memory of the batch that an example stands for."""

    def as_strided(self, t: Any, size: Any, stride: Any, storage_offset: int | None) -> Any:
        """Return `t.as_strided` as it is in the memory of the batch, or None.

        Raises:
          RuntimeError: if the view sees elements outside of its example.
        """
        level = self.innermost(t)
        if level is None:
            return None
        if level is not self.levels[-1]:
            with self.suspended():
                return self.as_strided(t, size, stride, storage_offset)
        written = any(e.writes and e.first._store is t._store for e in level.examples)
        found = find_alias(t, level.examples)
        if found is None:
            batch = level.record_batch(t)
            if batch.stride()[1:] != t.stride():
                return None
        with self.suspended():
            if found is not None:
                batch = Views().view(found, 0, level.size)
            have = layout(batch)
            begin = batch.storage_offset()  # also where an outer map has its examples in a batch
            offset = begin if storage_offset is None else storage_offset
            if len(size) != len(stride):
                raise RuntimeError(
                    "Tensor.as_strided(size, stride, ...): size and stride must have the same "
                    f"length! Got size {list(size)} and stride {list(stride)}"
                )
            _check(
                Layout(have.shape[1:], have.strides[1:], begin), size, stride, offset, level.older
            )
            start = int(layout(t).offset) + offset - begin
            if _own(layout(t if t._base_ is None else t._base_), Layout(size, stride, start)):
                with outside_vmap():  # a view of the example, so that writes reach it
                    return t.as_strided(size, stride, start)
            if written:
                return None
            out = batch.as_strided((level.size, *size), (have.strides[0], *stride), offset)
        return level.take_example(out, 0)

    def storage_offset(self, t: Any) -> int | None:
        """Return where an example begins in its batch; None if `t` is no view of one."""
        level = self.innermost(t)
        found = None if level is None else find_alias(t, level.examples)
        if level is None or found is None:
            return None
        if level is not self.levels[-1]:
            with self.suspended():
                return self.storage_offset(t)
        with self.suspended():
            return int(Views().view(found, 0, level.size).storage_offset())

    def new_empty_strided(self, t: Any, size: Any, stride: Any, named: dict[str, Any]) -> Any:
        """Return an example of a new batch with these strides; None if `t` is no example."""
        level = self.innermost(t)
        if level is None or len(size) != len(stride):
            return None
        if level is not self.levels[-1]:
            with self.suspended():
                return self.new_empty_strided(t, size, stride, named)
        whole, _ = level.find_batch(t)
        with self.suspended():
            batch = whole.new_empty_strided(
                (level.size, *size), (reach(size, stride), *stride), **named
            )
        return level.take_example(batch, 0)


def _own(memory: Layout, wanted: Layout) -> bool:
    """Tell if a view sees elements of its example only, none of those that lie between them."""
    whole = reach(memory.shape, memory.strides)
    if whole == math.prod(memory.shape):
        return True
    own = places(memory).reshape(-1)
    return np.unique(own).size == own.size and bool(np.isin(places(wanted), own).all())


def _check(example: Layout, size: Any, stride: Any, offset: int, older: bool) -> None:
    """Raise if a view sees more than the example does; PyTorch's older vmap forgets spaces."""
    wanted = reach(size, stride)
    if not wanted:
        return
    gap = "" if older else " "
    given = f",{gap}".join([str(list(size)), str(list(stride)), str(offset)])
    head = f"result = tensor.as_strided({given}){gap}can access memory outside of `tensor`. "
    rewrite = _REWRITE.format(gap)
    own = reach(example.shape, example.strides)
    if not own:
        raise RuntimeError(
            head + "`tensor` has no storage but the passed-in (size, stride, storage_offset) imply "
            "a result with some storage. " + rewrite
        )
    begin = example.offset
    last, end = offset + wanted, begin + own  # PyTorch says one more in its message
    if last > end or offset < begin:
        raise RuntimeError(
            head + f"`result` can access some{gap}memory in range [{offset}, {last}], but `tensor` "
            f"can only access some memory in range [{begin}, {end}]. " + rewrite
        )
