"""The sizes that factories are given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .handle import Handle
from .python_data import name_of_type


def size_of(args: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """Read the size in `zeros(2, 3)` and `zeros((2, 3))` alike, for the function of this name."""
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    packed = len(args) == 1 and isinstance(args[0], (tuple, list))
    args = tuple(args[0]) if packed else args
    for k, a in enumerate(args):
        if type(a) is not int and not _is_length(a, k):
            raise _no_length(name, a, k, packed)
    sizes = tuple([int(a) for a in args])
    for n in sizes:
        if n < 0 and name != "zeros":  # which has words of its own
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(sizes)}"
            )
    check_strides(sizes)
    if math.prod(sizes) >= 1 << 60:  # XLA would end the process
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
    return sizes


def check_strides(sizes: tuple[int, ...]) -> None:
    """Raise if the strides of rows of this size, which may be empty, do not fit."""
    if 0 in sizes and math.prod([max(n, 1) for n in sizes[1:]]) >= 1 << 63:
        raise RuntimeError("Stride calculation overflowed")


def _is_length(x: Any, place: int) -> bool:
    """Return whether `x` may be a length at this place of a size.

    PyTorch refuses a bool only at the first place.
    """
    if isinstance(x, bool):
        return place > 0
    if isinstance(x, Handle):
        return bool(x._v.dtype.kind in "iu")
    return not isinstance(x, (float, complex, np.bool_)) and hasattr(type(x), "__index__")


def _no_length(name: str, x: Any, place: int, packed: bool) -> TypeError:
    kind = name_of_type(x)
    if place:
        return TypeError(
            f"{name}(): argument 'size' failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    found = f"but found element of type {kind} at pos 0" if packed else f"not {kind}"
    return TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, {found}")


def named_size(name: str, size: Any, named: dict[str, Any]) -> Any:
    """Read a size that may come by its name; no other keyword may."""
    for k in named:
        if k != "size":
            raise TypeError(f"{name}() got an unexpected keyword argument '{k}'")
    return (named["size"],) if named else size


def need_shape(name: str, size: Any) -> None:
    """Refuse an int where a function takes a tuple of them."""
    if isinstance(size, (int, float)):
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
