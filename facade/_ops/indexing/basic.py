"""Ints, slices and None as indices: each is a view."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from leafax.functional.program.number_fits import need_int64
from leafax.functional.program.op import TABLE, Op

from ..._core.mask_ops import marks
from ..._dispatch.record import apply
from ..._host.views import view_at_rest
from ..._storage.host_arrays import read_like
from ..creation.factories import zeros
from .keys import ALL

_NARROW, _SELECT = TABLE["narrow"], TABLE["select"]
# x[a:b] with step 1: its start may change from call to call without compiling anew.
SLICE = Op(
    _NARROW.fn, name="slice", backward="SliceBackward0", view=True, numbers=("start",),
    write=_NARROW.write, sizes=_NARROW.sizes,
)  # fmt: skip
read_like(SLICE, _NARROW)


def _whole(x: Any) -> int:
    """Return a bound or the step of a slice as an int."""
    if type(x) is int:
        return x
    if not hasattr(x, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return operator.index(x)


def _bound(x: int, size: int) -> int:
    """Return a bound of a slice, counted from the front."""
    return min(max(x + size if x < 0 else x, 0), size)


def basic(
    self: Any, keys: Sequence[Any], places: Sequence[int] | None = None
) -> tuple[Any, tuple[Any, ...]]:
    """Apply ints, slices and None as views; the rest is returned as an advanced index.

    Args:
      places: where in the caller's index each key stood, which errors tell.
    """
    out = self
    dim = 0
    advanced: list[Any] = []
    for i, k in enumerate(keys):
        if k is None:
            out = out.unsqueeze(dim)
            dim += 1
            advanced.append(None)
        elif type(k) is int:
            out = _select(out, dim, k, i if places is None else places[i])
        elif type(k) is slice:
            out = slice_of(out, dim, k) if k is not ALL else out
            dim += 1
            advanced.append(None)
        elif isinstance(k, bool):
            out = out.unsqueeze(dim)
            advanced.append(_bool_index(k))
            dim += 1
        else:
            advanced.append(k)
            dim += k.dim() if marks(k) else 1
    if all(a is None for a in advanced):
        return out, ()
    while advanced and advanced[-1] is None:
        advanced.pop()
    return out, tuple(advanced)


def _select(out: Any, dim: int, k: int, place: int) -> Any:
    size = out.shape[dim] if dim < out.dim() else 0
    if not -size <= k < size:
        need_int64(k)
        raise IndexError(f"index {k} is out of bounds for dimension {place} with size {size}")
    return apply(_SELECT, out, dim, k)  # as it was said: the node tells it


def slice_of(out: Any, dim: int, k: slice, may_skip: bool = True) -> Any:
    """Take a slice along one dim; `out` itself if it `may_skip` a slice that leaves nothing out."""
    size = out.shape[dim]
    step = 1 if k.step is None else _whole(k.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first = 0 if k.start is None else _whole(k.start)
    last = None if k.stop is None else _whole(k.stop)
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop = _bound(first, size), size if last is None else _bound(last, size)
    if may_skip and step == 1 and first == 0 and (last is None or last >= size):
        return out
    args: tuple[Any, ...]
    if step == 1 and first == start and last == stop and start <= stop:
        op, args = SLICE, (dim, start, stop - start)
    else:
        op, args = TABLE["slice"], (dim, first, last, step)  # as it was said, for the node
    if not may_skip:
        kind = "by length", dim, len(range(start, stop, step)), step  # unlike the op's arguments
        view = view_at_rest(out, ((op, args, {}),), kind)
        if view is not None:
            return view
    return apply(op, out, *args)


def _bool_index(k: bool) -> Any:
    return zeros(1 if k else 0, dtype=__import__("leafax").int64)
