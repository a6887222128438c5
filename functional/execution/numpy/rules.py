"""JAX's primitives in NumPy: each rule makes a function of arrays of avals and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.lax import RoundingMethod

from .array_rules import (
    Unsupported,
    _broadcast,
    _concatenate,
    _iota,
    _length,
    _part,
    _part_written,
    _reshape,
    _reversed,
    _select,
    _slice,
    _split,
    _squeeze,
    _stack,
    _tile,
    _transpose,
    _unstack,
)
from .gather import gather, put, scatter
from .reduction_rules import (
    _cumsum,
    _greatest,
    _position,
    _reduced,
    _Rule,
    _running,
    _sort,
    _sum,
    _weighted,
)
from .windows import convolution, pad


def _plain(fn: Any) -> _Rule:
    return lambda given, made, **parameters: fn


def _only(kind: str, fn: Any) -> _Rule:
    def rule(given: Any, made: Any, **parameters: Any) -> Callable[..., Any]:
        if given[0].dtype.kind != kind:
            raise Unsupported
        return fn

    return rule


class Cast:
    """A function that casts to a dtype as NumPy does."""

    __slots__ = ("_dtype",)

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype

    def __call__(self, x: Any) -> Any:
        return x.astype(self._dtype)


def _convert(given: Any, made: Any, **_: Any) -> Any:
    dtype = made[0].dtype
    if given[0].dtype.kind == "f" and dtype.kind in "iu":
        return _truncated(np.iinfo(dtype))
    return Cast(dtype)


def _truncated(bounds: Any) -> Callable[..., Any]:
    """Cast floats to integers as XLA does: to the nearest for what does not fit, 0 for NaN."""
    above = float(bounds.max // 2 + 1) * 2  # a power of 2, so that any float dtype has it

    def truncated(x: Any) -> Any:
        fits = (x >= bounds.min) & (x < above)
        inside = np.where(fits, x, 0).astype(bounds.dtype)
        return np.where(fits | np.isnan(x), inside, np.where(x < 0, bounds.min, bounds.max))

    return truncated


def _dot(given: Any, made: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    (left, right), (left_batch, right_batch) = dimension_numbers
    if given[0].dtype != given[1].dtype or made[0].dtype != given[0].dtype:
        raise Unsupported
    if given[0].dtype.kind != "f":
        raise Unsupported
    x_free = [i for i in range(given[0].ndim) if i not in (*left, *left_batch)]
    y_free = [i for i in range(given[1].ndim) if i not in (*right, *right_batch)]
    batch = tuple(given[0].shape[i] for i in left_batch)
    once = math.prod(given[0].shape[i] for i in left)
    x_order, y_order = (*left_batch, *x_free, *left), (*right_batch, *right, *y_free)
    rows = math.prod(given[0].shape[i] for i in x_free)
    columns = math.prod(given[1].shape[i] for i in y_free)

    def product(x: Any, y: Any) -> Any:
        x = x.transpose(x_order).reshape(*batch, rows, once)
        y = y.transpose(y_order).reshape(*batch, once, columns)
        return _matmul(x, y).reshape(made[0].shape)

    return product


# OpenBLAS divides a product of more multiplications among threads, which wait for each other by
# spinning: where others use the cores, 8 ms go by for what one thread does in 0.04.
_ALONE = 1 << 18
_FEWEST = 4  # rows that are multiplied at once, or each would be too dear


def _matmul(x: Any, y: Any) -> Any:
    """Multiply matrices in blocks that one thread computes."""
    rows, columns = x.shape[-2], y.shape[-1]
    longest = max(rows, columns)
    step = _ALONE // max(1, x.shape[-1] * min(rows, columns))
    if step >= longest or step < _FEWEST:
        return np.matmul(x, y)
    out = np.empty((*x.shape[:-1], columns), x.dtype)
    for i in range(0, longest, step):
        part = slice(i, i + step)
        if rows == longest:
            np.matmul(x[..., part, :], y, out[..., part, :])
        else:
            np.matmul(x, y[..., part], out[..., part])
    return out


def _convolution(given: Any, made: Any, **parameters: Any) -> Any:
    if given[0].dtype.kind != "f" or any(x.dtype != given[0].dtype for x in (given[1], made[0])):
        raise Unsupported
    fn = convolution(given, made, **parameters)
    if fn is None:
        raise Unsupported
    return fn


def _power(given: Any, made: Any, *, y: int) -> Any:
    if given[0].dtype.kind != "f":
        raise Unsupported
    if y in (2, 3):
        return np.square if y == 2 else lambda x: x * x * x
    exponent = given[0].dtype.type(y)
    return lambda x: np.power(x, exponent)


def _raised(given: Any, made: Any) -> Any:
    same = given[0].dtype == given[1].dtype
    if given[0].dtype.kind != "f" and not (same and given[0].dtype.kind in "iu"):
        raise Unsupported
    return np.power


def _sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x))  # -0.0 stays what it is


def _bitcast(given: Any, made: Any, *, new_dtype: Any) -> Any:
    if given[0].dtype.itemsize != np.dtype(new_dtype).itemsize:
        raise Unsupported
    return lambda x: x.copy().view(new_dtype)


def _or_one(divisor: Any) -> Any:
    """Replace 0 by 1 in a divisor of integers."""
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def _remainder(given: Any, made: Any) -> Any:
    if given[0].dtype.kind == "f":
        return np.fmod

    def remainder(x: Any, y: Any) -> Any:
        return np.where(y == 0, x, np.fmod(x, _or_one(y)))  # XLA leaves `x` then

    return remainder


def _divide(given: Any, made: Any) -> Any:
    if given[0].dtype.kind == "f":
        return np.divide
    if given[0].dtype.kind != "i":
        raise Unsupported

    def quotient(x: Any, y: Any) -> Any:
        by = _or_one(y)
        down = x // by
        toward_zero = down + ((down < 0) & (down * by != x))
        return np.where(y == 0, y.dtype.type(-1), toward_zero)

    return quotient


def _round(given: Any, made: Any, *, rounding_method: Any) -> Any:
    if rounding_method != RoundingMethod.TO_NEAREST_EVEN:
        raise Unsupported
    return np.rint


def _shift(fn: Any, kinds: str) -> _Rule:
    def rule(given: Any, made: Any) -> Callable[..., Any]:
        if given[0].dtype.kind not in kinds:
            raise Unsupported
        bits = 8 * given[0].dtype.itemsize
        return lambda x, by: np.where(by < bits, fn(x, by % bits), x.dtype.type(0))

    return rule


def _shift_signed(given: Any, made: Any) -> Any:
    if given[0].dtype.kind != "i":
        raise Unsupported
    most = 8 * given[0].dtype.itemsize - 1

    def shifted(x: Any, by: Any) -> Any:  # by more bits than there are, the sign fills all
        return np.right_shift(x, np.where((by < 0) | (by > most), most, by))

    return shifted


def _special(name: str) -> _Rule:
    def rule(given: Any, made: Any, **parameters: Any) -> Callable[..., Any]:
        from scipy import special  # as late as JAX imports it

        return getattr(special, name)  # type: ignore[no-any-return]

    return rule


RULES: dict[str, _Rule] = {
    **{name: _plain(fn) for name, fn in {
        "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply,
        "neg": np.negative, "abs": np.abs, "max": np.maximum, "min": np.minimum,
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
        "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor, "not": np.invert, "copy": lambda x: x, "copy_p": lambda x: x,
        "stop_gradient": lambda x: x, "sign": _sign, "square": np.square,
    }.items()},
    **{name: _only("f", fn) for name, fn in {
        "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt,
        "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
        "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
        "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "exp2": np.exp2,
        "floor": np.floor, "ceil": np.ceil,
        "is_finite": np.isfinite, "atan2": np.arctan2,
        "rsqrt": lambda x: 1 / np.sqrt(x), "logistic": lambda x: 1 / (1 + np.exp(-x)),
    }.items()},
    **{name: _reduced(fn) for name, fn in {
        "reduce_sum": _sum, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    }.items()},
    "reduce_and": _reduced(np.all, "b"), "reduce_or": _reduced(np.any, "b"),
    "erf": _special("erf"), "erfc": _special("erfc"),
    "integer_pow": _power, "pow": _raised, "select_n": _select, "iota": _iota,
    "convert_element_type": _convert, "dot_general": _dot,
    "conv_general_dilated": _convolution, "reshape": _reshape, "tile": _tile,
    "top_k": _greatest, "weighted_taps": _weighted,
    "broadcast_in_dim": _broadcast, "slice": _slice, "pad": pad, "split": _split,
    "transpose": _transpose, "squeeze": _squeeze, "concatenate": _concatenate, "rev": _reversed,
    "stack": _stack, "unstack": _unstack, "cumsum": _running(_cumsum),
    "cumprod": _running(np.cumprod), "cummax": _running(np.maximum.accumulate),
    "cummin": _running(np.minimum.accumulate), "div": _divide, "round": _round,
    "bitcast_convert_type": _bitcast, "rem": _remainder, "sort": _sort,
    "shift_left": _shift(np.left_shift, "iu"), "shift_right_logical": _shift(np.right_shift, "u"),
    "shift_right_arithmetic": _shift_signed,
    "argmax": _position(np.argmax), "argmin": _position(np.argmin),
    "gather": gather, "scatter": scatter(put), "scatter-add": scatter(np.add.at),
    "scatter-mul": scatter(np.multiply.at), "scatter-max": scatter(np.maximum.at),
    "scatter-min": scatter(np.minimum.at),
    "dim_as_value": _length, "dynamic_slice": _part, "dynamic_update_slice": _part_written,
}  # fmt: skip
#: What NumPy and XLA may round in their own ways, also where each step is taken by itself.
ROUNDED = frozenset({
    "exp", "log", "log1p", "expm1", "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "asinh", "acosh", "atanh", "exp2", "atan2", "pow", "div", "erf", "erfc", "rsqrt",
    "logistic", "reduce_sum", "reduce_prod", "cumsum", "cumprod", "dot_general", "integer_pow",
    "conv_general_dilated", "weighted_taps", "scatter-add", "scatter-mul",
})  # fmt: skip
