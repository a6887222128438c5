"""Masks as indices: they become the positions where they are True, which only the data can tell.

Backward saves the masks themselves, as PyTorch's does: ops at masks are given both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leafax.functional.program.op import Op

from ..._autograd.extensions import extensions
from ..._core.handle import Handle
from ..._core.mask_ops import marks
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._core.vmap_checks import refuse_in_vmap
from ..._core.warn_once import warn
from ..._dispatch.conj_neg_bits import held
from ..._runtime.cut import cut
from ..._storage.lay_out import lay_out
from ..._tracing.infer import user_line
from ..creation.from_arrays import from_numpy_beside
from ..writes.write_out import write_out


class MaskError(IndexError):
    """A mask that does not fit."""


MaskError.__name__ = "IndexError"


def is_mask(k: Any) -> bool:
    return isinstance(k, Handle) and k._v.dtype == np.dtype("bool")


def _refuse_examples(mask: Any, target: Any = None) -> None:
    """Raise PyTorch's error for a mask that differs from example to example of a `vmap`."""
    if local.vmap is not None:
        local.vmap.refuse_mask(mask, target)


def places_of(out: Any, keys: Sequence[Any]) -> tuple[Any, ...]:
    """Return the keys, one a dim, with the positions where they are True in place of masks.

    What these are only the data can tell. Nothing is returned where no key is a mask.
    """
    if not any(map(marks, keys)):
        return ()
    found: list[Any] = []
    for k in keys:
        if marks(k):
            _refuse_examples(k)
            warn_of_bytes(k)
            check_mask(out, len(found), k)
            found += nonzero(k, as_tuple=True)
        else:
            found.append(k)
    return tuple(found)


def check_bool(mask: Any) -> None:
    """Raise PyTorch's error for one value at a mask of uint8."""
    if mask._v.dtype.name == "uint8":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"
        )


def warn_of_bytes(mask: Any) -> None:
    """Warn as PyTorch does of a mask of uint8."""
    if mask._v.dtype.name == "uint8":
        warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
            "instead."
        )


def check_mask(out: Any, dim: int, mask: Any) -> None:
    """Raise unless a mask fits what it is to be written through."""
    _refuse_examples(mask, out)
    for i in range(mask.dim()):
        if mask.shape[i] != out.size(dim + i):
            raise MaskError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape "
                f"of the indexed tensor {list(out.shape)} at index {dim + i}"
            )


_NONZERO = Op(lambda x: x, name="nonzero", differentiable=False)


# How many places were found at the user's lines: a few counts each, or that there are many.
_counts: dict[Any, set[int]] = {}
_FEW = 4


def _held_at_line(x: Any) -> np.ndarray:
    """Return the value of a tensor that is not zero in a few places or in many.

    Each count makes another program of what follows. Where there are many, what was recorded so
    far runs by itself: it is the same program at each.
    """
    counts = _counts.setdefault(user_line(), set())
    if len(counts) >= _FEW and local.vmap is None and not local.cuts.aside:
        cut("a mask with another count")
    values = held(x)
    if len(counts) < _FEW:
        counts.add(int(np.count_nonzero(values)))
    return values


def nonzero(input: Any, *, as_tuple: bool = False, out: Any = None) -> Any:
    """Return the indices of elements that are not zero, `(n, input.dim())`, or one tensor a dim.

    The number of results depends on the data, so this runs the program.
    """
    refuse_in_vmap("nonzero", input)
    if not isinstance(as_tuple, bool):
        raise TypeError(
            f"nonzero(): argument 'as_tuple' must be bool, not {name_of_type(as_tuple)}"
        )
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    values = _held_at_line(input)
    found = np.nonzero(np.atleast_1d(values))
    rows = np.stack(found, axis=1).astype(np.int64)
    if as_tuple:
        return lay_out(from_numpy_beside(input, rows), (1, len(rows))).unbind(1)
    made = from_numpy_beside(input, np.ascontiguousarray(rows[:, : values.ndim]))
    made = lay_out(made, (1, len(rows)))  # PyTorch finds them dim by dim
    if out is not None:
        return write_out(_NONZERO, made, out)
    return made


extensions.positions = places_of
