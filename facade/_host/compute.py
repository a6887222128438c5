"""Ops computed at once by NumPy, on tensors at rest on the host."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float
from leafax.functional.program.number_fits import fits_int64
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.options import may_run_op_by_op
from leafax.functional.program.program import Aval

from .._core.handle import Handle
from .._core.run_log import at_once
from .._core.trie import Value, local, resting
from .._tracing import inputs
from .._tracing.miss import key_part
from .plans import MOST, Plan, check, is_loose, loose, make_plan, number_places
from .rule import is_free, memory_of
from .views import items, view_of_call

#: Tensors without dims of PyTorch's default integers at rest.
INTEGER = resting(Aval((), np.dtype("int64")))
_UNBIND = TABLE["unbind"]
_STATIC = frozenset({bool, str, type(None), int, float})

_plans: dict[Any, Plan | None] = {}  # None for what is left to programs
_MOST_PLANS = 4096


def computed(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None, known: bool = False
) -> Any:
    """Return the result of a call whose first tensor is at rest; None where it is to be recorded.

    Args:
      known: only a call that was met before, as one whose arguments nobody has checked yet.
    """
    if not op.view:
        return compute(op, args, kwargs, known)
    if kwargs or memory_of(args[0]) is None:
        return None
    if op is _UNBIND:
        rows = args[1:] in ((), (0,)) and args[0]._v.shape
        found = items(args[0]) if rows else None
        return None if found is None else tuple(found)
    return view_of_call(op, args[0], args[1:])


def compute(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None, known: bool = False
) -> Any:
    """Return the result of an op, computed now; None where it is to be recorded.

    Args:
      known: only if such a call was met before.
    """
    if not may_be_computed(op) or not may_run_op_by_op() or not is_free():
        return None
    found = arrays_of(op, args, kwargs)
    if found is None:
        return None
    key, arrays = found
    if known and key not in _plans:
        return None
    plan = plan_for(op, args, kwargs, key, arrays)
    return None if plan is None else _results(plan, arrays)


def compute_operator(op: Op, x: Any, y: Any) -> Any:
    """Return what `compute` gives for an operator on a tensor and another or a number.

    It is spelt out, for what Python computes with indices and scores is made of little else.
    """
    number = type(y) is int or type(y) is float
    if not number and type(y) is not inputs._tensor_class:
        return compute(op, (x, y), None)
    key = op, x._v, type(y) if number else y._v, default_float()
    known = _operators.get(key)
    if known is None:
        out = compute(op, (x, y), None)
        if out is not None:
            plan = _plans.get(arrays_of(op, (x, y), None)[0])  # type: ignore[index]
            if plan is not None and plan.faults is None:
                if len(_operators) >= _MOST_PLANS:
                    _operators.clear()
                _operators[key] = plan, out._v
        return out
    if not is_free() or not may_run_op_by_op():
        return None
    a, b = memory_of(x), y if number else memory_of(y)
    if a is None or b is None:
        return None
    plan, kind = known
    if type(y) is int and not fits_int64(y) or (number and not _passes(op, plan, (x, y), {}, (b,))):
        return None
    try:
        found = plan.run(a, b)
    except ValueError:
        return None
    at_once.ops += 1
    return tensor_on(found[0], kind)


_operators: dict[Any, tuple[Plan, Value]] = {}  # plans of operators, and what the results are


def arrays_of(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, list[Any]] | None:
    """Return a key of an op and its arguments, and the arrays that it takes.

    None if not all of them are on the host, and small.
    """
    parts: list[Any] = [op, default_float()]
    arrays: list[Any] = []
    numbers, any_shape = number_places(op), is_loose(op)
    for i, a in enumerate(args):
        if not _add(a, i in numbers, any_shape, parts, arrays):
            return None
    if kwargs:
        for name, a in kwargs.items():
            parts.append(name)
            if not _add(a, name in op.numbers, any_shape, parts, arrays):
                return None
    return tuple(parts), arrays


def _add(a: Any, number: bool, any_shape: bool, parts: list[Any], arrays: list[Any]) -> bool:
    """Add an argument's part of the key, and its arrays; False if it is for programs."""
    kind = type(a)
    if kind is inputs._tensor_class:
        array = memory_of(a)
        if array is None or array.size > MOST:
            return False
        value = a._v
        parts.append(loose(value) if any_shape and value.strides is None else value)
        arrays.append(array)
        return True
    if number and (kind is float or kind is int):
        if kind is int and not fits_int64(a):
            return False
        parts.append(kind)
        arrays.append(a)  # as itself: to promotion it is no tensor
        return True
    if kind in _STATIC:
        parts.append(key_part(a, local.trace))
        return True
    if kind is tuple or kind is list:
        parts.append(kind)
        parts.append(len(a))
        return all([_add(x, False, any_shape, parts, arrays) for x in a])
    if isinstance(a, Handle) or not isinstance(a, np.dtype):
        return False
    parts.append(a)
    return True


def plan_for(op: Op, args: Any, kwargs: Any, key: Any, arrays: list[Any]) -> Plan | None:
    """Return the plan of an op, made when it is first met; None if it is to be recorded."""
    try:
        plan = _plans[key]
    except KeyError:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = make_plan(op, args, kwargs or {}, arrays)
    if plan is not None and not _passes(op, plan, args, kwargs or {}, arrays):
        return None
    if plan is not None and plan.faults is not None:
        if any([bad.any() for bad in plan.faults(*arrays)]):
            return None
    return plan


def _passes(op: Op, plan: Plan, args: Any, kwargs: Any, arrays: Any) -> bool:
    """Return whether numbers among the arguments are possible; else the recorder raises."""
    if op.need or op.fits and not all(map(fits_all, arrays)):
        try:
            check(op, args, kwargs, plan.dtype)
        except Exception:
            return False
    return True


def fits_all(x: Any) -> bool:
    """Return whether an operand is an array, or a number that all dtypes can hold."""
    return type(x) is np.ndarray or type(x) is int and 0 <= x < 128


def _results(plan: Plan, arrays: list[Any]) -> Any:
    try:
        found = plan.run(*arrays)
    except ValueError:  # of shapes that do not fit
        return None
    at_once.ops += 1
    if plan.kinds is None:
        array = found[0]
        kind = kind_of(array.dtype, array.shape)
        return tensor_on(array, kind)
    outs = [tensor_on(array, kind) for array, kind in zip(found, plan.kinds, strict=True)]
    return outs[0] if plan.wrap is None else plan.wrap(outs)


def tensor_on(array: np.ndarray, kind: Value) -> Any:
    """Make a tensor at rest on an array that nobody else holds."""
    out: Any = object.__new__(inputs._tensor_class)
    out._v = kind
    out._array = array
    out._trace = None
    return out


def kind_of(dtype: Any, shape: tuple[int, ...]) -> Value:
    """Return the value at rest of a tensor of this dtype and shape, row by row."""
    key = dtype, shape
    kind = _kinds.get(key)
    if kind is None:
        if len(_kinds) > _MOST_PLANS:
            _kinds.clear()
        kind = _kinds[key] = resting(Aval(shape, np.dtype(dtype)))
    return kind


_kinds: dict[Any, Value] = {}


@cache
def may_be_computed(op: Op) -> bool:
    """Return whether what an op makes follows from its operands' data and is no view of them."""
    return not (op.random or op.view or op.namespace == "opaque")
