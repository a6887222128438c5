"""An index as a list of keys, one for each dim: ints, slices, None and index tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.handle import Handle
from ..._core.mask_ops import marks
from ..._core.trie import local
from ..._storage.enter import enter
from ..creation.from_data import tensor

ALL = slice(None)  # for a dim that an ellipsis stands for


def _dims_of(k: Any) -> int:
    """Count the dims of a key as PyTorch does, which takes only tensors for masks."""
    if isinstance(k, Handle):
        return k.dim() if marks(k) else 1
    return 0 if k is None or k is Ellipsis or k is True or k is False else 1


def normalise(self: Any, index: Any) -> tuple[list[Any], list[int]]:
    """Return the index as a list without Ellipsis; sequences and arrays as tensors.

    Returns:
      the keys, and the place in the index that each comes from.
    """
    if isinstance(index, (list, str)) and len(index) < 32 and any(_nested(k) for k in index):
        warnings.warn(_NOT_A_TUPLE, UserWarning, stacklevel=4)
        index = tuple(index)
    given = list(index) if isinstance(index, tuple) else [index]
    used = sum(map(_dims_of, given))
    if used > self.dim():
        if self.dim() == 0:
            if type(index) is slice:
                enter(self, local.trace)  # autograd asks for its history first
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            if isinstance(index, np.integer):
                index = int(index)
            if type(index) is int and index:
                raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
            if type(index) is int:
                raise IndexError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
                )
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    return _expanded([_key(k) for k in given], self.dim() - used)


def _expanded(keys: list[Any], missing: int) -> tuple[list[Any], list[int]]:
    """Replace an ellipsis by the slices that it stands for, and tell where keys come from.

    PyTorch counts the missing dims for each ellipsis, so that behind a second one none is left.
    """
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if not places:
        return keys, list(range(len(keys)))
    first = places[0]
    if missing and len(places) > 1:
        second = places[1]
        for i, k in enumerate(keys[second:], second):
            if k is not Ellipsis:
                k = 0 if isinstance(k, slice) else k
                raise IndexError(f"index {k} is out of bounds for dimension {i} with size 0")
    rest = [i for i in range(first + 1, len(keys)) if keys[i] is not Ellipsis]
    return (
        [*keys[:first], *[ALL] * missing, *[keys[i] for i in rest]],
        [*range(first), *[first] * missing, *rest],
    )


_NOT_A_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
    "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
    "tensor index, x[torch.tensor(seq)], which will result either in an error or a different result"
)


def _nested(k: Any) -> bool:
    """Tell whether a list with this in it is read as a tuple of indices."""
    return (
        k is None
        or k is Ellipsis
        or isinstance(k, (slice, Handle, list, tuple, range, str, np.ndarray))
    )


def _key(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (bool, int, slice)):
        return k
    if isinstance(k, Handle):
        if k._v.dtype.kind in "fc":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if k.dim() or local.vmap is not None:
            return k
        # Without dims it is a number, and what is read is a view.
        return bool(k) if marks(k) else int(k)
    if isinstance(k, np.integer):
        return int(k)
    if isinstance(k, (list, tuple, np.ndarray, range)):
        made = tensor(list(k) if isinstance(k, range) else k)
        # PyTorch makes a tensor of int64 of what is no mask.
        return _key(made if marks(made) else made.long())
    kind = type(k)
    if isinstance(k, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(k, "__index__"):
        return int(k.__index__())
    name = f"numpy.{kind.__name__}" if isinstance(k, np.generic) else kind.__name__
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {name})"
    )


def without_masks(keys: Sequence[Any], places: Sequence[int]) -> tuple[list[Any], list[int]]:
    """Return the keys with whole slices in place of tensors: what is left are views."""
    found: list[Any] = []
    at: list[int] = []
    for k, place in zip(keys, places, strict=True):
        dims = k.dim() if marks(k) else 1
        found += [ALL] * dims if isinstance(k, Handle) else [k]
        at += [place] * dims
    return found, at
