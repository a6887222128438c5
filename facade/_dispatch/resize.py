"""Tensors that get another shape in place, and with it more memory where they need it."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.op import TABLE

from .._core.grad_modes import within
from .._core.trie import Mode, local
from .._storage.as_strided_outside import grow, lens_from
from .._storage.shared_storage import storage_of
from .._storage.strides import layout
from .record import apply


def resize_storage(
    self: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> None:
    """Give a tensor another shape; elements beyond the old ones are zeros.

    Args:
      strides: how it is to lie in memory; None is row by row.
    """
    # What is an inference tensor remains one, what is none remains none.
    with within(Mode.of(False, bool(self._v.inference), local.mode.autocast)):
        _resize(self, shape, strides or contiguous_strides(shape))


def _resize(self: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    count = math.prod(shape)
    base, before = self._base_, self._blens
    start = int(layout(self).offset)  # a tensor may say it
    store = storage_of(self)
    if start + count > store.cell.numel():
        if all(m() is None or m() is self for m in store.members):  # memory of its own
            flat = self.detach().reshape(-1)
            flat = apply(TABLE["cat"], (flat, flat.new_zeros(count - flat.shape[0])))
            self.data = flat.as_strided(shape, strides, start).clone()
            self._base_, self._blens = base, before
            return
        grow(store, start + count)
    views = [m for m in (r() for r in store.members) if m is not None and m._base_ is self]
    self.data = self.detach().as_strided(shape, strides, start)
    have = layout(self)
    if base is not None:
        again = lens_from(base, layout(base), self._lens, have)
        self._base_, self._blens = base, before if again is None else again
    for view in views:
        again = lens_from(self, have, view._lens, layout(view))
        view._blens = view._blens if again is None else again
