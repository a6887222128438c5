"""Arithmetic, elementwise: PyTorch's promotion, rounding and subgradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import cast, category, is_complex, is_integral, is_number, result_type
from ...program.op import Decorator, Fault, ops_with
from ..nn.checks import wide, wide_dtype
from ..shape.dimensions import broadcast_shapes
from .operands import BOOL, aligned, category_of, magnitude, quotient, refuse, with_jvp

op: Decorator = ops_with(elementwise=True)
Array = jax.Array


def _scaled(other: Array, alpha: Any) -> Array:
    """Compute `alpha * other`, where `other` is in the dtype of the result."""
    if type(alpha) is int and alpha == 1:
        return other
    kind, wanted = category_of(alpha), category(other.dtype)
    if kind == 0 and wanted != 0:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if kind == 2 and wanted < 2:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if kind == 3 and wanted < 3:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    return wide(cast(alpha, other.dtype)) * wide(other)  # halves are rounded with the sum


def _rounded(x: Array, dtype: Any) -> Array:
    """Cast from the dtype that PyTorch computes in to the dtype of the result."""
    return x if x.dtype == dtype else x.astype(dtype)


def _as_read(x: Any, operand: Array) -> Any:
    """Return the second operand of a product or quotient of halves as PyTorch's kernels read it.

    A number, or a tensor without dims, is not rounded to the halves' dtype first.

    Args:
      x: the operand as it was given, `operand` as it is aligned with the other.
    """
    if wide_dtype(operand.dtype) == operand.dtype:
        return operand
    scalar = not hasattr(x, "shape") or not x.shape
    return cast(x, wide_dtype(operand.dtype)) if scalar else wide(operand)


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool) or (hasattr(x, "dtype") and not is_number(x) and x.dtype == BOOL)


def no_bool_difference(input: Any, other: Any) -> None:
    """Raise PyTorch's error for a difference with bools, also Python's."""
    bools = [_is_bool(input), _is_bool(other)]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
            "or `logical_xor()` operator instead."
        )
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )


@op(inplace=True, numbers=("other", "alpha"), fits={"alpha": "any"})
def add(input: Any, other: Any, *, alpha: Any = 1) -> Array:
    """Add `alpha * other`; of two bools, "or"."""
    input, other = aligned(input, other)
    return _rounded(input + _scaled(other, alpha), input.dtype)


@op(inplace=True, numbers=("other", "alpha"), aliases=("subtract",), fits={"alpha": "any"})
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Array:
    """Subtract `alpha * other`."""
    no_bool_difference(input, other)
    input, other = aligned(input, other)
    return _rounded(input - _scaled(other, alpha), input.dtype)


@op(method=False, numbers=("other", "alpha"), fits={"alpha": "any"})
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Array:
    """Subtract `alpha * input` from `other`."""
    no_bool_difference(other, input)
    other, input = aligned(other, input)
    return _rounded(other - _scaled(input, alpha), input.dtype)


@op(saves={"self": "other", "other": "self"}, inplace=True, numbers=("other",),
    aliases=("multiply",))  # fmt: skip
def mul(input: Any, other: Any) -> Array:
    """Multiply; of two bools, "and"."""
    a, b = aligned(input, other)
    return _rounded(wide(a) * _as_read(other, b), a.dtype)


def _floored(input: Array, other: Array) -> Array:
    """Round a quotient down, as Python's `//` (c10's `div_floor_floating` for floats)."""
    if is_integral(input.dtype):
        return jnp.floor_divide(input, other)
    mod = lax.rem(*jnp.broadcast_arrays(input, other))
    quotient = (input - mod) / other
    quotient = quotient - ((mod != 0) & ((other < 0) != (mod < 0))).astype(quotient.dtype)
    floor = jnp.floor(quotient)
    floor = floor + (quotient - floor > 0.5).astype(floor.dtype)
    plain = input / other
    return jnp.where(other == 0, plain, jnp.where(quotient == 0, plain * 0, floor))


def _zero_division(input: Any, other: Any) -> list[Fault]:
    common = result_type(input, other)
    if category(common) >= 2:
        return []
    empty = 0 in broadcast_shapes(getattr(input, "shape", ()), getattr(other, "shape", ()))
    other = cast(other, common)  # where a number may become 0
    return [] if empty else [Fault(other == 0, RuntimeError, "ZeroDivisionError")]


def _div_check(input: Any, other: Any, *, rounding_mode: str | None = None) -> list[Fault]:
    return [] if rounding_mode is None else _zero_division(input, other)


@op(saves={"self": "other", "other": "*"}, inplace=True, numbers=("other",), check=_div_check,
    aliases=("divide", "true_divide"))  # fmt: skip
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Array:
    """Divide; integers give floats unless `rounding_mode` is "trunc" or "floor"."""
    if rounding_mode is None:
        a, b = aligned(input, other, to_float=True)
        return _rounded(quotient(wide(a), _as_read(other, b)), a.dtype)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    a, b = aligned(input, other)
    refuse(f"div_{rounding_mode}_cpu", a.dtype, 0, 3)
    if is_integral(a.dtype):
        return _floored(a, b) if rounding_mode == "floor" else lax.div(*jnp.broadcast_arrays(a, b))
    x, y = lax.stop_gradient(wide(a)), lax.stop_gradient(_as_read(other, b))
    found = _floored(x, y) if rounding_mode == "floor" else jnp.trunc(quotient(x, y))
    return _rounded(found, a.dtype)


@op(
    backward="NotImplemented", inplace=True, numbers=("other",), check=_zero_division,
    no_gradient=(RuntimeError, "derivative for aten::floor_divide is not implemented"),
)  # fmt: skip
def floor_divide(input: Any, other: Any) -> Array:
    """Divide and round down; it has no derivative."""
    return div(input, other, rounding_mode="floor")


def _quotient_tangent(quotient: Any) -> Any:
    """Differentiate `input - other * quotient(input, other)` with a constant quotient."""

    def tangent(result: Array, primals: Any, tangents: Any) -> Array:
        (x, y), (dx, dy) = primals, tangents
        return dx - dy * lax.stop_gradient(quotient(x, y))

    return tangent


def _truncated(x: Array, y: Array) -> Array:
    """Compute the whole part of a quotient, which a product with a reciprocal would miss by one."""
    plain = jnp.trunc(x / y)
    whole = jnp.round((x - lax.rem(*jnp.broadcast_arrays(x, y))) / y)
    return jnp.where(jnp.isfinite(plain), whole, plain)


_remainder = with_jvp(jnp.remainder, _quotient_tangent(_floored))
_fmod = with_jvp(jnp.fmod, _quotient_tangent(_truncated))


@op(backward="RemainderBackward1", saves={"self": "other", "other": "other"}, inplace=True,
    numbers=("other",), check=_zero_division)  # fmt: skip
def remainder(input: Any, other: Any) -> Array:
    """Compute Python's modulus: the sign is the divisor's."""
    input, other = aligned(input, other)
    refuse("remainder_cpu", input.dtype, 0, 3)
    fn = jnp.remainder if is_integral(input.dtype) else _remainder
    return fn(*jnp.broadcast_arrays(input, other))


@op(backward="FmodBackward1", saves={"self": "other", "other": "other"}, inplace=True,
    numbers=("other",), check=_zero_division)  # fmt: skip
def fmod(input: Any, other: Any) -> Array:
    """Compute C++'s modulus: the sign is the dividend's."""
    input, other = aligned(input, other)
    refuse("fmod_cpu", input.dtype, 0, 3)
    fn = jnp.fmod if is_integral(input.dtype) else _fmod
    return fn(*jnp.broadcast_arrays(input, other))


@op(inplace=True, aliases=("negative",))
def neg(input: Array) -> Array:
    """Change the sign."""
    if input.dtype == BOOL:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return -input


@op()
def positive(input: Array) -> Array:
    """Return the input."""
    if input.dtype == BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def _abs_in_place(input: Array) -> None:
    if is_complex(input.dtype):
        raise RuntimeError("In-place abs is not supported for complex tensors.")


@op(saves={"self": "*"}, inplace=True, aliases=("absolute",), inplace_check=_abs_in_place)
def abs(input: Array) -> Array:
    """Take the magnitude; the gradient at 0 is 0."""
    refuse("abs_cpu", input.dtype, 0)
    return magnitude(input)


@op(inplace=True)
def sign(input: Array) -> Array:
    """Return -1, 0 or 1; of NaN, 0."""
    if is_complex(input.dtype):
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
            "torch.sgn instead."
        )
    if input.dtype == BOOL:
        return input
    return (input > 0).astype(input.dtype) - (input < 0).astype(input.dtype)  # and 0 of -0.0


@op(saves={"self": "*", "result": "*"}, inplace=True)
def sgn(input: Array) -> Array:
    """Scale a complex number to magnitude 1; else the same as `sign`."""
    if not is_complex(input.dtype):
        return sign(input)
    size = magnitude(input)
    return jnp.where(size == 0, 0, input / jnp.where(size == 0, 1, size))
