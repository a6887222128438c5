"""Ops computed at once by NumPy, on tensors at rest on the host.

Each is worked out when it is first met: recorded on a trace of its own it tells the results'
shapes, dtypes and strides; its body is evaluated by `functional/execution/numpy`. Elementwise ops
are worked out once for all shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.numpy.array_rules import Unsupported
from leafax.functional.execution.numpy.evaluator import evaluator
from leafax.functional.program.dtypes import default_float
from leafax.functional.program.number_fits import check_numbers, fits_int64
from leafax.functional.program.op import Op
from leafax.functional.program.options import may_run_op_by_op
from leafax.functional.program.program import Aval

from .._core.handle import Handle
from .._core.run_log import at_once
from .._core.trie import Trace, Value, local, resting
from .._tracing import inputs
from .._tracing.inputs import NUMBER, add_input
from .._tracing.miss import key_part
from .._tracing.take import take
from .rule import is_free, memory_of
from .views import view_of_call

MOST = 1 << 14  # elements of an operand or result
#: Tensors without dims of PyTorch's default integers at rest.
INTEGER = resting(Aval((), np.dtype("int64")))
_STATIC = frozenset({bool, str, type(None), int, float})


class Plan:
    """A way to compute an op on operands of some kinds by NumPy.

    Attributes:
      run: maps arrays to the list of results.
      kinds: of the results; None if that follows from the arrays' shapes.
      dtype: of the first result.
      wrap: makes what the op returns of several tensors; None if it has one.
      faults: maps arrays to where the data are in error; None if none are.
    """

    __slots__ = ("run", "kinds", "dtype", "wrap", "faults")

    def __init__(
        self, run: Callable[..., Any], kinds: Any, dtype: Any, wrap: Any, faults: Any
    ) -> None:
        self.run, self.kinds, self.dtype, self.wrap = run, kinds, dtype, wrap
        self.faults = faults


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


def arrays_of(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, list[Any]] | None:
    """Return a key of an op and its arguments, and the arrays that it takes.

    None if not all of them are on the host, and small.
    """
    parts: list[Any] = [op, default_float()]
    arrays: list[Any] = []
    numbers, loose = _number_places(op), _is_loose(op)
    for i, a in enumerate(args):
        if not _add(a, i in numbers, loose, parts, arrays):
            return None
    if kwargs:
        for name, a in kwargs.items():
            parts.append(name)
            if not _add(a, name in op.numbers, loose, parts, arrays):
                return None
    return tuple(parts), arrays


def _add(a: Any, number: bool, loose: bool, parts: list[Any], arrays: list[Any]) -> bool:
    """Add an argument's part of the key, and its arrays; False if it is for programs."""
    kind = type(a)
    if kind is inputs._tensor_class:
        array = memory_of(a)
        if array is None or array.size > MOST:
            return False
        value = a._v
        parts.append(_loose(value) if loose and value.strides is None else value)
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
        return all([_add(x, False, loose, parts, arrays) for x in a])
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
        plan = _plans[key] = _plan(op, args, kwargs or {}, arrays)
    if plan is not None and (op.need or op.fits and not all(map(_fits_all, arrays))):
        try:
            _check(op, args, kwargs or {}, plan.dtype)
        except Exception:  # it is raised where it is recorded
            return None
    if plan is not None and plan.faults is not None:
        if any([bad.any() for bad in plan.faults(*arrays)]):
            return None
    return plan


def _fits_all(x: Any) -> bool:
    """Return whether an operand is an array, or a number that all dtypes can hold."""
    return type(x) is np.ndarray or type(x) is int and 0 <= x < 128


def _check(op: Op, args: Any, kwargs: Any, dtype: Any) -> None:
    """Raise what numbers among the arguments make impossible."""
    if op.need is not None:
        op.need(*map(_value, args), **{name: _value(a) for name, a in kwargs.items()})
    check_numbers(op, args, kwargs, dtype)


def _value(a: Any) -> Any:
    return a._v if isinstance(a, Handle) else a


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


@cache
def _number_places(op: Op) -> frozenset[int]:
    return frozenset(i for i, name in enumerate(op.parameters) if name in op.numbers)


@cache
def _is_loose(op: Op) -> bool:
    """Return whether one plan serves operands of all shapes: each element is computed alone."""
    return (op.elementwise or op in elementwise_writes) and not op.sizes


elementwise_writes: set[Op] = set()  # in-place variants of elementwise ops


@cache
def _loose(value: Value) -> Value:
    """Return what stands for operands of a dtype that have dims, or of one that have none."""
    return resting(Aval((1,) if value.shape else (), value.dtype))


def _plan(op: Op, args: Any, kwargs: Any, arrays: list[Any]) -> Plan | None:
    """Make the plan of an op; None if NumPy does not compute it, or the call is in error."""
    running, local.trace = local.trace, Trace(local.root(local.mode))
    try:
        state = _recorded(op, args, kwargs, lambda value: value)
        _check(op, args, kwargs, state.value.dtype)
        exact = _exact(state, arrays)
        if exact is None:
            return None
        kinds = tuple([v.resting for v in state.values])
        call = state.call
        faults = _faults(call, arrays)
        if _is_loose(op) and not call.many and all(k.strides is None for k in kinds):
            return _plan_for_any_shape(op, args, kwargs, arrays, exact, kinds[0].dtype)
        if any(k.numel > MOST for k in kinds):
            return None
        wrap = None
        if call.many:
            wrap = tuple if call.wrap is None else lambda outs: call.wrap(*outs)
        return Plan(exact, kinds, kinds[0].dtype, wrap, faults)
    except jax.errors.JAXTypeError:
        raise
    except Exception:  # the recorder meets it again, and raises it in PyTorch's words
        return None
    finally:
        local.trace = running


def _recorded(op: Op, args: Any, kwargs: Any, kind: Callable[[Value], Value]) -> Any:
    """Record an op on a trace of its own; numbers that may change are inputs.

    Args:
      kind: what stands for the value of an operand.
    """
    trace = local.trace
    numbers = _number_places(op)

    def entered(a: Any, number: bool) -> Any:
        if isinstance(a, Handle):
            return add_input(trace, kind(a._v.resting), None)
        if number and type(a) in NUMBER:
            return add_input(trace, NUMBER[type(a)], None)
        if type(a) in (tuple, list):
            return type(a)([entered(x, False) for x in a])
        return a

    given = tuple([entered(a, i in numbers) for i, a in enumerate(args)])
    named = {name: entered(a, name in op.numbers) for name, a in kwargs.items()}
    return take(trace, op, given, named)


def _exact(state: Any, arrays: list[Any]) -> Callable[..., Any] | None:
    """Return the function of NumPy for a recorded step."""
    avals = tuple([v.aval for v in state.operands])
    with jax.enable_x64(True):
        return evaluator(state.call.evaluate, arrays, False, (state.call, avals))


def _plan_for_any_shape(
    op: Op, args: Any, kwargs: Any, arrays: list[Any], exact: Any, dtype: Any
) -> Plan | None:
    """Return the plan of an elementwise op, traced on operands of one element.

    It must give the same bits as the plan for the operands' own shapes does.
    """
    ones = [np.ones(a.shape and (1,), a.dtype) if type(a) is np.ndarray else a for a in arrays]
    local.trace = Trace(local.root(local.mode))
    state = _recorded(op, args, kwargs, _loose)
    one = _exact(state, ones)
    if one is None:
        return None

    def run(*given: Any) -> Any:
        (found,) = one(*given)
        shapes = [a.shape for a in given if type(a) is np.ndarray]
        shape = shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        if found.shape != shape:
            found = np.array(np.broadcast_to(found, shape))
        return (found,)

    expected = _bits(exact(*arrays))
    faults = _faults(state.call, ones)
    direct = _by_ufunc(one, arrays, run)
    if direct is not None and _bits(direct(*arrays)) == expected:
        return Plan(direct, None, dtype, None, faults)
    return Plan(run, None, dtype, None, faults) if _bits(run(*arrays)) == expected else None


def _faults(call: Any, arrays: list[Any]) -> Callable[..., Any] | None:
    """Return the function that tells where data are in error; None if they never are.

    Raises:
      Unsupported: if NumPy cannot tell.
    """
    if call.op.check is None:
        return None

    def bad(*given: Any) -> Any:
        return tuple([fault.bad for fault in call.faults(*given)])

    with jax.enable_x64(True):
        found = evaluator(bad, arrays, False)
    if found is None:
        raise Unsupported
    return found if found.outputs else None


def _bits(arrays: Any) -> Any:
    return [(x.dtype, x.shape, x.tobytes()) for x in arrays]


def _by_ufunc(one: Any, arrays: list[Any], slow: Any) -> Callable[..., Any] | None:
    """Return a function that calls one ufunc of NumPy, if an evaluator does no more than that.

    Numbers among its arguments take the dtype of the array beside them in NumPy as well.
    """
    found = one.as_ufunc()
    if found is None:
        return None
    ufunc, arguments = found
    order = [k for k, _ in arguments]
    dtypes = {arrays[k].dtype for k in order if type(arrays[k]) is np.ndarray}
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes
    for k, cast in arguments:
        if cast is not None and (type(arrays[k]) is np.ndarray or cast != dtype):
            return None
    if order not in ([0], [0, 1]):
        return None
    quiet = dtype.kind != "f"

    def direct(*given: Any) -> Any:
        try:
            if quiet:
                return (np.asarray(ufunc(*given)),)
            with np.errstate(all="ignore"):
                return (np.asarray(ufunc(*given)),)
        except OverflowError:  # a number that wraps round in the dtype
            return slow(*given)

    return direct
