"""Joins of many arrays, and their gradients, by one call of NumPy.

Traced, each operand is several equations, and a list of another length is another trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lowering.vjp import VjpCall
from ...program.program import Aval, Call, Slot

_FLOATS = frozenset({np.dtype("f4"), np.dtype("f8")})


def join_of(call: Any, avals: tuple[Aval, ...]) -> Callable[..., list[Any]] | None:
    """Return the function that computes `stack` or `cat`, or their gradient; None for others."""
    if type(call) is Call:
        known = _dim_of(call, avals)
        if known is None:
            return None
        stacks, dim = known
        join: Any = np.stack if stacks else np.concatenate
        return lambda *arrays: [join(arrays, dim)]
    if type(call) is not VjpCall or type(call.call) is not Call or call.given != (0,):
        return None
    if len(call.missing) != call.n:
        return None
    parts = tuple([aval for _, aval in call.missing])
    known = _dim_of(call.call, parts)
    if known is None:
        return None
    stacks, dim = known
    wanted = call.wanted
    if stacks:
        index = (slice(None),) * dim

        def unstack(grad: Any) -> list[Any]:
            grad = np.asarray(grad)
            return [np.array(grad[(*index, k)]) for k in wanted]

        return unstack
    ends = np.cumsum([aval.shape[dim] for aval in parts]).tolist()
    whole = slice(None)
    cuts = [(*((whole,) * dim), slice(ends[k] - parts[k].shape[dim], ends[k])) for k in wanted]

    def split(grad: Any) -> list[Any]:
        grad = np.asarray(grad)
        return [np.array(grad[cut], order="C") for cut in cuts]

    return split


def reads_nothing(call: Any, avals: tuple[Aval, ...]) -> bool:
    """Return True if `call` is such a join: its gradient reads none of its operands."""
    return type(call) is Call and _dim_of(call, avals) is not None


def _dim_of(call: Call, avals: tuple[Aval, ...]) -> tuple[bool, int] | None:
    """Return whether a call stacks, and along which dim; None if it is no join of arrays alike."""
    if call.op.qualified not in ("stack", "cat") or not avals:
        return None
    stacks = call.op.qualified == "stack"
    given = call.arguments
    slots: Any = given.get("tensors")
    dim = given.get("dim", 0)
    if type(dim) is not int or type(slots) not in (tuple, list) or len(slots) != len(avals):
        return None
    if any(type(s) is not Slot or s.index != k for k, s in enumerate(slots)):
        return None
    first = avals[0]
    ndim = len(first.shape) + stacks
    if not ndim or not -ndim <= dim < ndim or first.dtype not in _FLOATS:
        return None
    dim %= ndim

    def kind(aval: Aval) -> Any:
        """Return what must be alike: but for the dim that `cat` joins along."""
        shape = aval.shape if stacks else (*aval.shape[:dim], *aval.shape[dim + 1 :])
        return aval.dtype, len(aval.shape), shape

    if any(aval.weak or kind(aval) != kind(first) for aval in avals):
        return None
    return stacks, dim
