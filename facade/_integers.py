"""Integers at rest on the host: `i + 1` of an index that was drawn is Python's arithmetic.

Recorded, it would be an op whose value is asked for at once, by a slice. Only what NumPy holds is
computed so: a number that a program computed is mostly used by programs alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional import TABLE, Aval, Op, fits_int64

from ._at_rest import is_free
from ._host_data import data_of
from ._trace import resting

#: What tensors without dims of PyTorch's default integers are at rest.
INTEGER = resting(Aval((), np.dtype("int64")))
_BOOL = resting(Aval((), np.dtype("bool")))

_INTEGERS: dict[Op, Callable[[int, int], int]] = {
    TABLE["add"]: operator.add, TABLE["sub"]: operator.sub, TABLE["mul"]: operator.mul,
    TABLE["rsub"]: lambda x, y: y - x,
}  # fmt: skip
_BOOLS: dict[Op, Callable[[int, int], bool]] = {
    TABLE[name]: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def computed(op: Op, t: Any, other: Any) -> Any:
    """The result of an operator on an `INTEGER` tensor and another or a Python int, at rest.

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
    """The number that an `INTEGER` tensor is, if NumPy holds it or it is read from data at rest."""
    array = t._array
    if type(array) is not np.ndarray:
        if array is not None or t._stale is not None:
            return None
        array = data_of(t)
        if array is None:
            return None
    return int(array)
