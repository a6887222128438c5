"""Bodies of the factory functions that are not random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.export import is_symbolic_dim

from ...program.dtypes import (
    cast,
    cpp_name,
    default_float,
    is_complex,
    is_floating,
    is_integral,
    result_type,
    scalar_name,
)
from ...program.number_fits import check_fits
from ...program.op import op
from ..elementwise.operands import refuse

Array = jax.Array


def need_size(name: str, size: Sequence[int]) -> tuple[int, ...]:
    """Require a size without negative lengths."""
    for n in size:
        if n < 0 and name == "normal":
            sizes = list(size)
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {sizes}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"{name}: Dimension size must be non-negative.")
    return tuple(size)


def _number_dtype(*numbers: Any) -> np.dtype:
    return result_type(*numbers, default_float=default_float())


@op(differentiable=False, method=False, sizes=("size",))
def zeros(size: Sequence[int], dtype: np.dtype | None = None) -> Array:
    """Make a tensor of zeros, of the default float unless told otherwise."""
    return jnp.zeros(need_size("zeros", size), dtype or default_float())


@op(differentiable=False, method=False, sizes=("size",))
def ones(size: Sequence[int], dtype: np.dtype | None = None) -> Array:
    """Make a tensor of ones, of the default float unless told otherwise."""
    return jnp.ones(need_size("ones", size), dtype or default_float())


@op(differentiable=False, method=False, sizes=("size",))
def empty(size: Sequence[int], dtype: np.dtype | None = None) -> Array:
    """Make a tensor whose elements mean nothing; here they are zeros."""
    return jnp.zeros(need_size("empty", size), dtype or default_float())


@op(
    differentiable=False, method=False, sizes=("size",), numbers=("fill_value",),
    fits={"fill_value": "any"},
)  # fmt: skip
def full(size: Sequence[int], fill_value: Any, dtype: np.dtype | None = None) -> Array:
    """Make a tensor of one number, of the number's dtype unless told otherwise."""
    dtype = dtype or np.dtype(
        fill_value.dtype if getattr(fill_value, "ndim", None) == 0 and not fill_value.weak_type
        else _number_dtype(fill_value)
    )  # fmt: skip
    return jnp.broadcast_to(cast(fill_value, dtype), need_size("full", size))


def arange_length(start: Any, end: Any, step: Any, dtype: np.dtype) -> int:
    """Number of elements of `arange`, checked."""
    if is_symbolic_dim(end):  # a length that no dtype is too small for
        if start != 0 or step != 1:
            raise NotImplementedError("a symbol is the length of a range that begins with 0")
        return end  # type: ignore[return-value]
    if not (step > 0 or step < 0):  # NaN is neither
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {_short(start)} -> {_short(end)}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype.name == "int64":  # it counts integer steps, whatever was given
        if int(step) == 0:
            raise ValueError("step must be nonzero")
        return -(-(int(end) - int(start)) // int(step))
    return math.ceil((float(end) - float(start)) / float(step))


def _short(number: Any) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


@op(differentiable=False, method=False, sizes=("start", "end"))
def arange(start: Any, end: Any, step: Any = 1, dtype: np.dtype | None = None) -> Array:
    """Count from `start` up to but without `end`; int64 if all three are ints."""
    dtype = np.dtype(dtype or _number_dtype(start, end, step))
    if any(isinstance(n, float) and not math.isfinite(n) for n in (start, end)):
        raise RuntimeError(f"unsupported range: {_short(start)} -> {_short(end)}")
    if any(isinstance(n, complex) for n in (start, end, step)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    refuse("arange_cpu", dtype, 0, 3)
    for number in () if is_symbolic_dim(end) else (start, end, step):
        check_fits(number, np.dtype("int64" if is_integral(dtype) else "float64"))
    length = arange_length(start, end, step, dtype)
    if not is_symbolic_dim(length) and length >= 1 << 60:
        raise RuntimeError("invalid size, possible overflow?")
    if is_integral(dtype):
        steps = lax.iota(dtype, length)
        first, stride = np.asarray([int(start), int(step)]).astype(dtype)
        return steps * stride + first
    # Each element is computed from its index in double, then rounded once.
    exact = lax.iota(np.dtype("float64"), length) * float(step) + float(start)
    return exact.astype(dtype)


def _need_steps(steps: int) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def _linspace(
    start: Any, end: Any, steps: int, dtype: np.dtype, distance: Array | None = None
) -> Array:
    """Count from both ends to the middle, as PyTorch does, so that both are exact."""
    _need_steps(steps)
    first, last = cast(start, dtype), cast(end, dtype)  # of integers what is before the point
    if steps < 2:
        return jnp.broadcast_to(first, (steps,))
    wide = np.dtype("float64") if is_integral(dtype) else dtype
    first, last = first.astype(wide), last.astype(wide)
    # XLA would multiply by the reciprocal of a constant, and 50 - 25 * 1 would not be 25.
    count = jnp.where(first == first, jnp.asarray(steps - 1, wide), jnp.asarray(np.nan, wide))
    width = (last - first if distance is None else distance) / count
    index = lax.iota(np.dtype("int64"), steps)
    forwards = first + width * index.astype(wide)
    backwards = last - width * (steps - 1 - index).astype(wide)
    return jnp.where(index < steps // 2, forwards, backwards).astype(dtype)


def _span_dtype(name: str, dtype: np.dtype | None, *ends: Any) -> np.dtype:
    given = _number_dtype(*ends) if any(isinstance(x, complex) for x in ends) else default_float()
    if dtype is None:
        return given
    if is_complex(given) and not is_complex(dtype):
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {cpp_name(given)} can't be safely cast to passed "
            f"dtype {scalar_name(dtype)}"
        )
    refuse(f"{name}_cpu", dtype, 0)
    return np.dtype(dtype)


@op(
    differentiable=False,
    method=False,
    numbers=("start", "end"),
    fits={"start": "any", "end": "any"},
)
def linspace(start: Any, end: Any, steps: int, dtype: np.dtype | None = None) -> Array:
    """Make `steps` numbers at equal distances from `start` to `end`, both included."""
    return _linspace(start, end, steps, _span_dtype("linspace", dtype, start, end))


@op(differentiable=False, method=False, numbers=("start", "end", "base"))
def logspace(
    start: Any, end: Any, steps: int, base: Any = 10.0, dtype: np.dtype | None = None
) -> Array:
    """Make powers of `base` whose exponents are at equal distances."""
    dtype = _span_dtype("logspace", dtype, start, end)
    wide = dtype if is_complex(dtype) else np.dtype("float64")
    width = None
    if steps > 1 and is_integral(dtype):
        start, end = cast(start, dtype), cast(end, dtype)
    if steps > 1 and dtype.itemsize == 2 and is_floating(dtype):
        # The ends and their distance are rounded to a half, the exponents between them are not.
        start, end = cast(start, dtype), cast(end, dtype)
        width = (end - start).astype(wide)
        start, end = start.astype(wide), end.astype(wide)
    rounded = steps > 1 and is_floating(dtype) and width is None
    exponents = _linspace(start, end, steps, dtype if rounded else wide, width)
    return cast(jnp.power(cast(base, wide), exponents.astype(wide)), dtype)  # integers wrap


@op(differentiable=False, method=False)
def eye(n: int, m: int | None = None, dtype: np.dtype | None = None) -> Array:
    """Make a matrix with ones on its diagonal and zeros elsewhere."""
    m = n if m is None else m
    for name, length in (("n", n), ("m", m)):
        if length < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    return cast(jnp.eye(n, m, dtype=bool), dtype or default_float())


def _triangle(name: str, row: int, col: int, mask: Any, dtype: np.dtype | None) -> Array:
    if dtype is not None and np.dtype(dtype).name not in ("int32", "int64"):
        kind = scalar_name(np.dtype(dtype))
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")
    for side, length in (("row", row), ("col", col)):
        if length < 0:
            raise RuntimeError(f"{side} must be non-negative, got{length}")
    return jnp.asarray(np.stack(np.nonzero(mask)), dtype or np.dtype("int64"))


@op(differentiable=False, method=False)
def tril_indices(row: int, col: int, offset: int = 0, dtype: np.dtype | None = None) -> Array:
    """Return row and column indices of a lower triangle."""
    mask = np.tri(max(row, 0), max(col, 0), offset, bool)
    return _triangle("tril_indices", row, col, mask, dtype)


@op(differentiable=False, method=False)
def triu_indices(row: int, col: int, offset: int = 0, dtype: np.dtype | None = None) -> Array:
    """Return row and column indices of an upper triangle."""
    mask = ~np.tri(max(row, 0), max(col, 0), offset - 1, bool)
    return _triangle("triu_indices", row, col, mask, dtype)
