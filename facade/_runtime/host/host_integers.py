"""Integers at rest on the host: `i + 1` of an index that was drawn is Python's arithmetic.

Recorded, it would be an op whose value is asked for at once, by a slice. Only what NumPy holds is
computed so: a number that a program computed is mostly used by programs alone. Labels become
`long()` there as well: the step's program would hand them back, as a tensor that is alive.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.number_fits import fits_int64
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Aval

from ..._core.trie import resting
from ..._storage.host_arrays import data_of
from .host_views import is_free, is_plain

#: What tensors without dims of PyTorch's default integers are at rest.
INTEGER = resting(Aval((), np.dtype("int64")))
_BOOL = resting(Aval((), np.dtype("bool")))
_MOST = 4096  # elements that are cast on the host

_INTEGERS: dict[Op, Callable[[int, int], int]] = {
    TABLE["add"]: operator.add, TABLE["sub"]: operator.sub, TABLE["mul"]: operator.mul,
    TABLE["rsub"]: lambda x, y: y - x,
}  # fmt: skip
_BOOLS: dict[Op, Callable[[int, int], bool]] = {
    TABLE[name]: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def computed(op: Op, t: Any, other: Any) -> Any:
    """Compute an operator on an `INTEGER` tensor and another or a Python int, at rest.

    None where it is to be recorded.
    """
    fn: Any = _INTEGERS.get(op) or _BOOLS.get(op)
    if fn is None or not is_free():
        return None
    x, y = integer(t), other if type(other) is int else integer(other)
    if x is None or y is None or not fits_int64(y):
        return None
    found = fn(x, y)
    out: Any = object.__new__(type(t))
    if type(found) is bool:
        out._v = _BOOL
    elif fits_int64(found):
        out._v = INTEGER
    else:
        return None
    out._array = np.array(found, out._v.dtype)
    out._trace = None
    return out


def integer(t: Any) -> int | None:
    """Return the number of an `INTEGER` tensor, if NumPy or data at rest hold it."""
    array = t._array
    if type(array) is not np.ndarray:
        if array is not None or t._stale is not None:
            return None
        array = data_of(t)
        if array is None:
            return None
    return int(array)


def cast(t: Any, dtype: np.dtype[Any]) -> Any:
    """Cast integers that NumPy holds to another dtype; None where it is to be recorded."""
    array, value = t._array, t._v
    if type(array) is not np.ndarray or t._shares or value.inference:
        return None
    key = value, dtype
    kind = _casts.get(key)
    if kind is None:
        if value.dtype.kind not in "iu" or dtype.kind not in "iu" or value.numel > _MOST:
            return None
        if value.index >= 0 or value.strides is not None:
            return None
        kind = _casts[key] = resting(Aval(tuple(value.shape), dtype))
    if not is_plain(t) or not is_free():
        return None
    out: Any = object.__new__(type(t))
    out._v = kind
    out._array = array.astype(dtype)
    out._trace = None
    return out


_casts: dict[Any, Any] = {}  # what is cast, and the dtype -> what comes out
