"""Ways to compute ops by NumPy on operands of some kinds, worked out when they are first met.

Recorded on a trace of its own an op tells its results' shapes, dtypes and strides; its body is
evaluated by `functional/execution/numpy`. Elementwise ops are worked out once for all shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.numpy.array_rules import Unsupported
from leafax.functional.execution.numpy.evaluator import evaluator
from leafax.functional.program.number_fits import check_numbers
from leafax.functional.program.op import Op
from leafax.functional.program.program import Aval

from .._core.handle import Handle
from .._core.trie import Value, local, resting
from .._tracing.inputs import NUMBER, add_input
from .._tracing.take import take
from .rule import scratch_trace

MOST = 1 << 14  # elements of an operand or result


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


@cache
def number_places(op: Op) -> frozenset[int]:
    return frozenset(i for i, name in enumerate(op.parameters) if name in op.numbers)


@cache
def is_loose(op: Op) -> bool:
    """Return whether one plan serves operands of all shapes: each element is computed alone."""
    return (op.elementwise or op in elementwise_writes) and not op.sizes


elementwise_writes: set[Op] = set()  # in-place variants of elementwise ops


@cache
def loose(value: Value) -> Value:
    """Return what stands for operands of a dtype that have dims, or of one that have none."""
    return resting(Aval((1,) if value.shape else (), value.dtype))


def make_plan(op: Op, args: Any, kwargs: Any, arrays: list[Any]) -> Plan | None:
    """Make the plan of an op; None if NumPy does not compute it, or the call is in error."""
    running, local.trace = local.trace, scratch_trace()
    try:
        state = recorded(op, args, kwargs, lambda value: value)
        check(op, args, kwargs, state.value.dtype)
        exact = _exact(state, arrays)
        if exact is None:
            return None
        kinds = tuple([v.resting for v in state.values])
        call = state.call
        faults = _faults(call, arrays)
        if is_loose(op) and not call.many and all(k.strides is None for k in kinds):
            return _plan_for_any_shape(op, args, kwargs, arrays, exact, kinds[0].dtype)
        if any(k.numel > MOST for k in kinds):
            return None
        wrap = None
        if call.many:
            wrap = tuple if call.wrap is None else lambda outs: call.wrap(*outs)
        return Plan(exact, kinds, kinds[0].dtype, wrap, faults)
    except Exception:  # the recorder meets it again, and raises it in PyTorch's words
        return None
    finally:
        local.trace = running


def recorded(op: Op, args: Any, kwargs: Any, kind: Callable[[Value], Value]) -> Any:
    """Record an op on the running trace, from operands at rest; numbers that may change are inputs.

    Args:
      kind: what stands for the value of an operand.
    """
    trace = local.trace
    numbers = number_places(op)

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
    local.trace = scratch_trace()
    state = recorded(op, args, kwargs, loose)
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
    return found if found(*arrays) else None


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
    number = next((k for k in order if type(arrays[k]) is int), None)
    if number is not None and dtype.kind in "iu":
        low, top = np.iinfo(dtype).min, np.iinfo(dtype).max

        def bounded(*given: Any) -> Any:
            if low <= given[number] <= top:
                return (np.asarray(ufunc(*given)),)
            return slow(*given)  # it wraps round in the dtype

        return bounded

    def direct(*given: Any) -> Any:
        if quiet:
            return (np.asarray(ufunc(*given)),)
        try:
            with np.errstate(all="ignore"):
                return (np.asarray(ufunc(*given)),)
        except OverflowError:  # an integer that no float holds
            return slow(*given)

    return direct


def check(op: Op, args: Any, kwargs: Any, dtype: Any) -> None:
    """Raise what numbers among the arguments make impossible."""
    if op.need is not None:
        op.need(*map(_value, args), **{name: _value(a) for name, a in kwargs.items()})
    check_numbers(op, args, kwargs, dtype)


def _value(a: Any) -> Any:
    return a._v if isinstance(a, Handle) else a
