"""The hit path of the recorder, written out for elementwise ops.

Each function here does as `apply` does when the step is known, without the loop over arguments.
Keys must be spelt exactly as `apply` spells them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from leafax.functional.program.op import Op

from ..._core.dtypes import python_number
from ..._core.overrides.state import meets_first_override
from ..._core.trie import local
from ..._dispatch.record import apply
from ..._host.compute import compute_operator
from ..creation.from_data import as_tensor

Method = Callable[..., Any]


def unary(op: Op, cls: type) -> Method:
    """Return a method `(self) -> Tensor`."""
    new = object.__new__

    def method(self: Any) -> Any:
        trace = local.trace
        state = trace.state.next.get((op, self._v))
        if state is None:
            return apply(op, self)
        trace.state = state
        out: Any = new(cls)
        out._v = state.value
        out._trace = trace
        trace.refs.append(ref(out))
        return out

    method.__name__ = op.name
    method.__doc__ = op.fn.__doc__
    return method


def binary(op: Op, cls: type) -> Method:
    """Return a method `(self, other) -> Tensor` for a tensor or a Python number."""
    new = object.__new__
    equal = op.name == "eq"  # the one operator that takes arrays

    def method(self: Any, other: Any) -> Any:
        trace = local.trace
        kind = type(other)
        if kind is cls:
            state = trace.state.next.get((op, self._v, other._v))
        elif (kind is float or kind is int) and other:
            state = trace.state.next.get((op, self._v, kind, other))
        elif kind is int:
            state = trace.state.next.get((op, self._v, int, "0"))
        else:
            state = None
        if state is None:
            if kind is not cls and kind is not float and kind is not int:
                array = equal and kind is np.ndarray
                operand_ = _array(other) if array else operand(other, cls)
                if operand_ is NotImplemented:
                    again = meets_first_override((other,))
                    return method(self, other) if again else NotImplemented
                other = operand_
            if self._v.index < 0 and not self._v.requires_grad:
                found = compute_operator(op, self, other)
                if found is not None:
                    return found
            return apply(op, self, other)
        trace.state = state
        out: Any = new(cls)
        out._v = state.value
        out._trace = trace
        trace.refs.append(ref(out))
        return out

    method.__name__ = op.name
    method.__doc__ = op.fn.__doc__
    return method


def operand(x: Any, cls: type) -> Any:
    """Return the right-hand side of an operator: a tensor or a number, or NotImplemented."""
    if isinstance(x, np.generic):  # among them `float64`, which is a `float`
        return python_number(x) if isinstance(x, (np.number, np.bool_)) else NotImplemented
    if isinstance(x, (bool, int, float, complex)) or isinstance(x, cls):
        return x
    return NotImplemented  # an array too: NumPy then computes with the tensor's values


def _array(x: np.ndarray) -> Any:
    """Return an array as a tensor, or NotImplemented where there is no such dtype."""
    try:
        return as_tensor(x)
    except TypeError:
        return NotImplemented
