"""Rounding and limits, elementwise: floor, clamp, maximum and their like."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import (
    category,
    cpp_name,
    default_float,
    finfo,
    is_complex,
    is_floating,
    is_integral,
    is_number,
    scalar_name,
)
from ...program.op import Decorator, ops_with
from ..nn.checks import wide
from .operands import BOOL, aligned, quotient, refuse, select, unmoved, unsupported, with_jvp

op: Decorator = ops_with(elementwise=True)

Array = jax.Array

_BOTH = {"self": "*", "other": "*"}


def _whole(input: Array, name: str, fn: Any) -> Array:
    """Round with `fn`; integers are whole already."""
    if is_complex(input.dtype):
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    refuse(f"{name}_vml_cpu", input.dtype, 0)
    return input if is_integral(input.dtype) else fn(input)


@op(inplace=True)
def floor(input: Array) -> Array:
    """Round down."""
    return _whole(input, "floor", jnp.floor)


@op(inplace=True)
def ceil(input: Array) -> Array:
    """Round up."""
    return _whole(input, "ceil", jnp.ceil)


@op(inplace=True, aliases=("fix",))
def trunc(input: Array) -> Array:
    """Round towards zero."""
    return _whole(input, "trunc", jnp.trunc)


@op(inplace=True)
def round(input: Array, *, decimals: int = False) -> Array:
    """Round to nearest, ties to even; whole numbers only where no `decimals` are asked for."""
    if decimals == 0 and decimals is not False:  # asked for, though it be none
        refuse("round_vml_cpu", input.dtype, 1)
    refuse("round_cpu" if decimals else "round_vml_cpu", input.dtype, 0, 3)
    if is_integral(input.dtype):
        if decimals:
            refuse("round_cpu", input.dtype, 1)
        return input
    if decimals == 0:
        return lax.round(input, lax.RoundingMethod.TO_NEAREST_EVEN)
    x = wide(input)
    unit = jnp.asarray(10.0 ** abs(decimals), x.dtype)
    x = x * unit if decimals > 0 else quotient(x, unit)
    x = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    return (quotient(x, unit) if decimals > 0 else x * unit).astype(input.dtype)


@op(inplace=True)
def frac(input: Array) -> Array:
    """Keep the fractional part, with its sign."""
    refuse("frac_cpu", input.dtype, 0, 1, 3)
    return input - lax.stop_gradient(jnp.trunc(input))


def _is_plain(bound: Any) -> bool:
    """Return True for a Python number that is not NaN."""
    return isinstance(bound, (int, float)) and bound == bound


def _between_value(x: Array, low: Array, high: Array) -> Array:
    x = jnp.where((x < low) | (low != low) & (x == x), low, x)  # NaN of a bound is passed on
    return jnp.where((x > high) | (high != high) & (x == x), high, x)


def _between_tangent(result: Array, primals: Any, tangents: Any) -> Any:
    """Differentiate by PyTorch's `clamp_backward` and `clamp_backward_min_max`."""
    (x, low, high), (dx, dlow, dhigh) = primals, tangents
    moved = select((x >= low) & (x <= high), dx) + select((low < high) & (x < low), dlow)
    return moved + select((x > high) | (high < low), dhigh)


_between = with_jvp(_between_value, _between_tangent)


def _as_number(bound: Any, other: Any, input: Any) -> Any:
    """Return a bound as PyTorch reads it: the tensor's number if the other bound is a number."""
    if is_number(other) and getattr(bound, "shape", None) == ():
        own = getattr(bound, "dtype", None)
        if own is not None and is_floating(own) and category(own) > category(input.dtype):
            return bound.astype(default_float())
    return bound


def _bounded(input: Any, min: Any, max: Any) -> Array:
    """Clamp; on the bounds the gradient is the input's, outside it is the bound's."""
    if is_complex(input.dtype):
        raise NotImplementedError("clamp is not supported for complex types")
    if is_floating(input.dtype):  # as which a number is compared
        min, max = (float(x) if type(x) is int else x for x in (min, max))
    if is_number(min) != is_number(max):
        min, max = _as_number(min, max, input), _as_number(max, min, input)
    x, *bounds = aligned(*(v for v in (input, min, max) if v is not None))
    bound = min if max is None else max
    by_tensor = len(bounds) == 1 and hasattr(bound, "dtype") and not is_number(bound)
    if is_complex(x.dtype):
        tensors = all(hasattr(b, "dtype") and not is_number(b) for b in (min, max))
        if by_tensor or tensors:
            name = "clamp_cpu" if tensors else "maximum_cpu" if max is None else "minimum_cpu"
            raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(x.dtype)}'")
        raise NotImplementedError("clamp is not supported for complex types")
    if x.dtype == BOOL and not by_tensor:
        given = "_min" if max is None else "_max" if min is None else ""
        scalar = "" if hasattr(bound, "shape") else "_scalar"
        refuse(f"clamp{given}{scalar}_cpu", x.dtype, 0)
    if is_floating(x.dtype):
        if len(bounds) == 2 and not (is_number(min) or is_number(max)):
            return _between(*jnp.broadcast_arrays(x, *bounds))
        x, bounds = unmoved(x), [unmoved(b) for b in bounds]  # where one is NaN, none moves
    if min is not None:
        low = bounds.pop(0)
        # PyTorch passes on the NaN of a bound.
        below = x < low if _is_plain(min) else (x < low) | (low != low)
        x = jnp.where(below & (x == x) if not _is_plain(min) else below, low, x)
    if max is not None:
        high = bounds.pop(0)
        above = x > high if _is_plain(max) else (x > high) | (high != high)
        x = jnp.where(above & (x == x) if not _is_plain(max) else above, high, x)
    return x


def _refuse_complex(kernel: str, input: Array, bound: Any) -> None:
    """Refuse complex numbers, in the words of another op if a bound is a tensor."""
    if is_complex(input.dtype) and hasattr(bound, "dtype") and not is_number(bound):
        raise unsupported(kernel, input.dtype)


def _clamp_in_place(input: Array, min: Any = None, max: Any = None) -> None:
    """Check the target as C++ does: with numbers as bounds the message names it otherwise."""
    bounds = [b for b in (min, max) if b is not None]
    wide = aligned(input, *bounds)[0].dtype
    if any(hasattr(b, "dtype") and not is_number(b) for b in bounds):
        if is_complex(wide) and not is_complex(input.dtype):
            raise RuntimeError(
                f"result type {scalar_name(wide)} can't be cast to the desired output type "
                f"{scalar_name(input.dtype)}"
            )
        return
    if category(wide) > category(input.dtype) and not is_complex(wide):
        raise RuntimeError(
            f"result type {scalar_name(wide)} can't be cast to the desired output type "
            f"{cpp_name(input.dtype)}"
        )


@op(backward="ClampBackward1", saves={"self": "*", "min": "*", "max": "*"}, inplace=True,
    numbers=("min", "max"), aliases=("clip",), inplace_check=_clamp_in_place,
    fits={"min": "any", "max": "any"})  # fmt: skip
def clamp(input: Array, min: Any = None, max: Any = None) -> Array:
    """Limit to [min, max]; the gradient is 1 on the closed interval."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return _bounded(input, min, max)


@op(saves={"self": "*", "min": "*"}, inplace=True, numbers=("min",),
    inplace_check=_clamp_in_place, fits={"min": "any"})  # fmt: skip
def clamp_min(input: Array, min: Any) -> Array:
    """Limit from below."""
    _refuse_complex("maximum_cpu", input, min)
    return _bounded(input, min, None)


@op(saves={"self": "*", "max": "*"}, inplace=True, numbers=("max",),
    inplace_check=_clamp_in_place, fits={"max": "any"})  # fmt: skip
def clamp_max(input: Array, max: Any) -> Array:
    """Limit from above."""
    _refuse_complex("minimum_cpu", input, max)
    return _bounded(input, None, max)


def _pair(name: str, input: Array, other: Array) -> list[Array]:
    x, y = aligned(input, other)
    if is_complex(x.dtype):
        raise RuntimeError(f"{name} not implemented for complex tensors.")
    return jnp.broadcast_arrays(x, y)


def _extreme(fn: Any, loses: Any) -> Any:
    """Give `fn` of two PyTorch's gradient: to both where one is NaN, halved where equal."""

    def tangent(result: Array, primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        share = jnp.where(x == y, 0.5, 1).astype(x.dtype)
        return select(~loses(x, y), dx * share) + select(~loses(y, x), dy * share)

    smooth = with_jvp(fn, tangent)
    return lambda x, y: smooth(x, y) if is_floating(x.dtype) else fn(x, y)


_maximum = _extreme(lambda x, y: jnp.maximum(x, y), jnp.less)
_minimum = _extreme(lambda x, y: jnp.minimum(x, y), jnp.greater)


@op(saves=_BOTH)
def maximum(input: Array, other: Array) -> Array:
    """Take the larger, or NaN; equals share the gradient."""
    return _maximum(*_pair("maximum", input, other))


@op(saves=_BOTH)
def minimum(input: Array, other: Array) -> Array:
    """Take the smaller, or NaN; equals share the gradient."""
    return _minimum(*_pair("minimum", input, other))


@op(saves=_BOTH)
def fmax(input: Array, other: Array) -> Array:
    """Take the larger, numbers before NaN; of equals `input` has the gradient."""
    x, y = _pair("fmax", input, other)
    return jnp.where((x >= y) | (y != y), x, y)


@op(saves=_BOTH)
def fmin(input: Array, other: Array) -> Array:
    """Take the smaller, numbers before NaN; of equals `input` has the gradient."""
    x, y = _pair("fmin", input, other)
    return jnp.where((x <= y) | (y != y), x, y)


@op(saves={"self": "*"}, inplace=True)
def nan_to_num(
    input: Array, nan: float | None = None, posinf: float | None = None,
    neginf: float | None = None,
) -> Array:  # fmt: skip
    """Replace NaN by 0 and infinities by the largest numbers, or by what is given."""
    if category(input.dtype) < 2:
        return input
    if is_complex(input.dtype):
        return lax.complex(
            nan_to_num(jnp.real(input), nan, posinf, neginf),
            nan_to_num(jnp.imag(input), nan, posinf, neginf),
        )
    limits = finfo(input.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    with np.errstate(over="ignore"):  # what is too large for the dtype is infinite
        none, most, least = (np.asarray(v, input.dtype) for v in (nan or 0.0, high, low))
    x = jnp.where(input != input, none, input)
    x = jnp.where(input == jnp.inf, most, x)
    return jnp.where(input == -jnp.inf, least, x)
