"""Parts of floating point numbers: neighbours, mantissas and exponents, powers in double."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import (
    cast,
    finfo,
    is_complex,
    is_floating,
    is_integral,
    promote,
    scalar_name,
)
from ...program.op import op
from ..elementwise.operands import aligned, two_floats, unsupported, with_jvp
from ..elementwise.powers import pow as power
from ..nn.checks import repeated, wide
from ..shape.dimensions import broadcast_shapes

Array = jax.Array


def _nextafter_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (a, b), (da, _) = primals, tangents
    return da * (a != b).astype(a.dtype)


_nextafter = with_jvp(jnp.nextafter, _nextafter_tangent)


@op(inplace=True, saves={"self": "*", "other": "*"})
def nextafter(input: Array, other: Array) -> Array:
    """Return the next number after `input` towards `other`; it moves as `input` does."""
    a, b = two_floats("nextafter_cpu", input, other)
    return _nextafter(*jnp.broadcast_arrays(a, b))


# Past these exponents a number of so many bytes is 0 or infinite, whatever it was.
_EXPONENTS = {4: 300, 8: 2200}


def _scaled(x: Array, exponent: Array) -> Array:
    """Compute `x * 2 ** exponent` in three steps: the power alone might overflow."""
    most = _EXPONENTS[x.dtype.itemsize]
    exponent = jnp.clip(exponent.astype(np.int32), -most, most)  # as PyTorch casts it to C's int
    part, one = exponent // 3, jnp.ones((), x.dtype)
    step = jnp.ldexp(one, part)
    return x * step * step * jnp.ldexp(one, exponent - 2 * part)


@op(inplace=True, saves={"other": "self", "result": "*"})
def ldexp(input: Array, other: Array) -> Array:
    """Compute `input * 2 ** other`; floats keep their dtype where `other` is integers."""
    if is_floating(input.dtype) and is_integral(other.dtype):
        if other.dtype == bool:
            raise unsupported("ldexp_cpu_exp", other.dtype)
        x = repeated(input, broadcast_shapes(input.shape, other.shape))
        return cast(_scaled(wide(x), other), input.dtype)
    broadcast_shapes(input.shape, other.shape)
    (power,) = promote(other, to_float=True)
    exact = 2**power if is_complex(power.dtype) else (2 ** wide(power)).astype(power.dtype)
    a, b = aligned(input, exact)
    if is_complex(input.dtype) and is_integral(other.dtype):  # which tell nothing of precision
        return cast(input, input.dtype) * cast(exact, input.dtype)
    return a * b


class frexp_return(NamedTuple):  # noqa: N801
    """Results of `torch.frexp`."""

    mantissa: Array
    exponent: Array


@op(saves={"exponent": "*"})
def frexp(input: Array) -> frexp_return:
    """Split numbers into mantissas in [0.5, 1) and exponents of 2."""
    if not is_floating(input.dtype):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    still = jax.lax.stop_gradient(input)
    exponent = jnp.frexp(still)[1].astype(np.int32)
    half, one = exponent // 2, jnp.ones((), input.dtype)  # in two steps: no power overflows
    mantissa = input * jnp.ldexp(one, -half) * jnp.ldexp(one, half - exponent)
    tiny, part, below = _of_subnormal(still)
    return frexp_return(jnp.where(tiny, part, mantissa), jnp.where(tiny, below, exponent))


def _of_subnormal(x: Array) -> tuple[Array, Array, Array]:
    """Return where numbers are subnormal, and their mantissas and exponents there.

    XLA takes them for 0, so they are read from the bits: a whole number of the smallest of them.
    """
    limits = finfo(x.dtype)
    kind = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(x, kind)
    count = bits & np.asarray(np.iinfo(kind).max, kind)
    tiny = (count != 0) & (count < 1 << limits.nmant)
    whole = jnp.where(tiny, count, 0).astype(np.float64)
    part, exponent = jnp.frexp(jnp.where(bits < 0, -whole, whole))
    below = exponent.astype(np.int32) + (limits.minexp - limits.nmant)
    return tiny, part.astype(x.dtype), below


def _float_power_in_place(input: Array, exponent: Any) -> None:
    wide = _power_dtype(input, exponent)
    if input.dtype != wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {scalar_name(input.dtype)} but the "
            f"operation's result requires dtype {scalar_name(wide)}"
        )


def _power_dtype(*operands: Any) -> np.dtype:
    kinds = [x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype for x in operands]
    return np.dtype("complex128" if any(is_complex(k) for k in kinds) else "float64")


@op(inplace=True, backward="PowBackward0",
    saves={"self": "*", "exponent": "*", "result": "*exponent"},
    inplace_check=_float_power_in_place)  # fmt: skip
def float_power(input: Any, exponent: Any) -> Array:
    """Compute `input ** exponent` in float64 or complex128."""
    wide = _power_dtype(input, exponent)

    def widened(x: Any) -> Any:
        return x.astype(wide) if hasattr(x, "dtype") else jnp.asarray(x, wide)

    if not hasattr(exponent, "dtype"):
        return power(widened(input), exponent)
    return power(widened(input), widened(exponent))
