"""Special functions of statistics and physics: gamma, zeta, Bessel, normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

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
from ..elementwise.operands import aligned, refuse, unsupported, with_jvp
from ..nn.checks import repeated, wide
from ..shape.dimensions import broadcast_shapes

Array = jax.Array


# Kernels that are not called as their function; and those that PyTorch has for no half precision.
_KERNELS = {"i0": "i0_vml_cpu", "ndtr": "erf_vml_cpu"}
_WIDE = frozenset({"log_ndtr", "ndtri"})


def _unary(
    name: str, fn: Callable[[Array], Array], doc: str, saves: Sequence[str] = ("self",),
    **columns: Any,
) -> None:  # fmt: skip
    kernel, halves = _KERNELS.get(name, f"{name}_cpu"), name not in _WIDE

    def body(input: Array) -> Array:
        (x,) = promote(input, to_float=True)
        if is_complex(x.dtype) or not halves and x.dtype.itemsize == 2:
            raise unsupported(kernel, x.dtype)
        return cast(fn(wide(x)), x.dtype)  # JAX has few of these in half precision

    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    op(saves=dict.fromkeys(saves, "*"), **columns)(body)


_BOTH = ("self", "result")
_SPECIAL: dict[str, Any] = {"namespace": "special", "method": False}


def _by_one(x: Array, ratio: Array) -> Array:
    """Return a derivative that is a half at 0 (and NaN), where its formula divides by `x`."""
    return jnp.where(jnp.abs(x) > 0, ratio, jnp.full((), 0.5, x.dtype))


def _safe(x: Array) -> Array:
    return jnp.where(jnp.abs(x) > 0, x, jnp.ones((), x.dtype))


# JAX's own derivatives are wrong at 0, where they pass through the absolute value.
_i0: Callable[..., Array] = with_jvp(special.i0, lambda r, x, dx: dx[0] * _i1(x[0]))
_i1: Callable[..., Array] = with_jvp(
    special.i1, lambda r, x, dx: dx[0] * _by_one(x[0], _i0(x[0]) - _i1(x[0]) / _safe(x[0]))
)
_i0e: Callable[..., Array] = with_jvp(
    special.i0e, lambda r, x, dx: dx[0] * (_i1e(x[0]) - jnp.sign(x[0]) * _i0e(x[0]))
)
_i1e: Callable[..., Array] = with_jvp(
    special.i1e,
    lambda r, x, dx: (
        dx[0] * _by_one(x[0], _i0e(x[0]) - _i1e(x[0]) * (jnp.sign(x[0]) + 1 / _safe(x[0])))
    ),
)
_unary("i0", _i0, "Modified Bessel function of order 0.", inplace=True)
_unary("i0e", _i0e, "`i0` scaled by `exp(-|x|)`.", backward="SpecialI0EBackward0",
       saves=_BOTH, **_SPECIAL)  # fmt: skip
_unary("i1", _i1, "Modified Bessel function of order 1.", backward="SpecialI1Backward0",
       saves=_BOTH, **_SPECIAL)  # fmt: skip
_unary("i1e", _i1e, "`i1` scaled by `exp(-|x|)`.", backward="SpecialI1EBackward0",
       saves=_BOTH, **_SPECIAL)  # fmt: skip
_ndtri = with_jvp(
    special.ndtri, lambda r, x, dx: dx[0] * (math.sqrt(2 * math.pi) * jnp.exp(r * r / 2))
)
_unary("ndtri", _ndtri, "Inverse of the normal distribution function.",
       backward="SpecialNdtriBackward0", saves=("result",), **_SPECIAL)  # fmt: skip
_unary("log_ndtr", special.log_ndtr, "Logarithm of the normal distribution function.",
       backward="SpecialLogNdtrBackward0", saves=_BOTH, **_SPECIAL)  # fmt: skip
_unary("ndtr", special.ndtr, "Normal distribution function.", backward="MulBackward0", **_SPECIAL)


def _entr_value(x: Array) -> Array:
    positive = x > 0
    value = -x * jnp.log(jnp.where(positive, x, 1))
    return jnp.where(jnp.isnan(x) | positive, value, jnp.where(x == 0, x, -jnp.inf))


_entr = with_jvp(_entr_value, lambda r, x, dx: dx[0] * (-1 - jnp.log(x[0])))

_unary("entr", _entr, "`-x log(x)`.", backward="SpecialEntrBackward0", **_SPECIAL)


def _xlog1py_value(x: Array, y: Array) -> Array:
    zero = x == 0
    value = x * jnp.log1p(jnp.where(zero, jnp.zeros((), y.dtype), y))
    return jnp.where(jnp.isnan(y), y, jnp.where(zero, jnp.zeros((), x.dtype) * x, value))


def _xlog1py_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (x, y), (dx, dy) = primals, tangents
    flat = (x == 0) & (y <= -1)
    return dx * jnp.where(flat, 0, jnp.log1p(jnp.where(flat, 0, y))) + dy * (x / (y + 1))


_xlog1py = with_jvp(_xlog1py_value, _xlog1py_tangent)


@op(namespace="special", method=False, backward="SpecialXlog1PyBackward0",
    saves={"self": "*", "other": "*"}, numbers=("input", "other"))  # fmt: skip
def xlog1py(input: Any, other: Any) -> Array:
    """Compute `input * log1p(other)`, 0 where `input` is 0."""
    a, b = aligned(input, other, to_float=True)
    if is_complex(a.dtype):
        raise unsupported("xlog1py_cpu", a.dtype)
    return _xlog1py(*jnp.broadcast_arrays(a, b))


@op(namespace="special", method=False, backward="SpecialZetaBackward0",
    saves={"self": "other", "other": "other"})  # fmt: skip
def zeta(input: Any, other: Any) -> Array:
    """Compute the Hurwitz zeta function."""
    a, b = aligned(input, other, to_float=True)
    if is_complex(a.dtype) or a.dtype.itemsize == 2:
        raise unsupported("zeta_cpu", a.dtype)
    return _zeta(a, b)


@jax.custom_jvp
def _zeta(x: Array, q: Array) -> Array:
    # JAX's has NaN at half of the poles.
    poles = (x == 1) | ((q <= 0) & (q == jnp.floor(q)))
    return jnp.where(x < 1, jnp.nan, jnp.where(poles, jnp.inf, special.zeta(x, q)))


@_zeta.defjvp
def _zeta_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> Any:
    x, q = primals
    return _zeta(x, q), -x * _zeta(x + 1, q) * tangents[1]


@op(name="polygamma", function=False, inplace=True, saves={"self": "*"})
def polygamma(input: Array, n: int) -> Array:
    """Compute the n-th derivative of `digamma`."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    (x,) = promote(input, to_float=True)
    if n == 0:
        from ..elementwise.unary import digamma

        return digamma(x)
    if is_complex(x.dtype):
        raise unsupported("trigamma" if n == 1 else "polygamma", x.dtype)
    return _polygamma(n, x)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _polygamma(n: int, x: Array) -> Array:
    if n == 1:
        wide = x.astype(np.promote_types(x.dtype, np.float32))
        return _trigamma(wide).astype(x.dtype)
    # JAX's is for positive numbers: negative ones are moved there by the recurrence.
    steps = jnp.arange(16, dtype=x.dtype)
    left = x < 0.5
    terms = (jnp.where(left, x, 1)[..., None] + steps) ** -(n + 1)
    factor = jnp.full((), (-1) ** n * math.factorial(n), x.dtype)
    value = special.polygamma(n, jnp.where(left, x + 16, x))
    value = jnp.where(left, value - factor * terms.sum(-1), value)
    # PyTorch's is by the zeta function, which takes minus infinity for a pole.
    return jnp.where(x == jnp.inf, jnp.nan, jnp.where(x == -jnp.inf, -jnp.inf * factor, value))


def _trigamma(x: Array) -> Array:
    """Compute by reflection, whose poles PyTorch misses by the rounding of pi, and an expansion."""
    left = x < 0.5
    sine = jnp.sin(jnp.full((), np.pi, x.dtype) * x)
    y = jnp.where(left, 1 - x, x)
    near = ((y[..., None] + jnp.arange(6, dtype=x.dtype)) ** -2).sum(-1)
    y = y + 6
    square = 1 / (y * y)
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42))
    near = near + (1 + 1 / (2 * y) + square * series) / y
    return jnp.where(left, np.pi**2 / (sine * sine) - near, near)


@_polygamma.defjvp
def _polygamma_jvp(n: int, primals: tuple[Array], tangents: tuple[Array]) -> Any:
    return _polygamma(n, *primals), _polygamma(n + 1, *primals) * tangents[0]


def trigamma(x: Array) -> Array:
    """Compute the second derivative of `lgamma`."""
    return _polygamma(1, x)


@op(inplace=True, backward="MvlgammaBackward0", saves={"self": "*"})
def mvlgamma(input: Array, p: int) -> Array:
    """Compute the multivariate log-gamma function of dimension `p`."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype == bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    refuse("arange_cpu", input.dtype, 3)  # which makes the steps
    (x,) = promote(input, to_float=True)
    steps = jnp.arange(p, dtype=x.dtype) * -0.5
    constant = p * (p - 1) * 0.25 * np.log(np.pi)
    return special.gammaln(x[..., None] + steps).sum(-1) + jnp.full((), constant, x.dtype)


def _two_floats(kernel: str, a: Any, b: Any) -> list[Array]:
    a, b = aligned(a, b)
    refuse(kernel, a.dtype, 0, 1, 3)
    return [a, b]


def _at_limits(value: Array, a: Array, x: Array, whole: int) -> Array:
    """Return an incomplete gamma function, where `a` is 0 or infinite as well.

    Args:
      whole: what it is where all lies below `x`.
    """
    value = jnp.where((a == 0) & (x > 0), whole, value)
    far = jnp.where(x == jnp.inf, jnp.nan, 1 - whole).astype(value.dtype)
    return jnp.where((a == jnp.inf) & (x >= 0), far, value)


@op(inplace=True, backward="IgammaBackward0", saves={"self": "other", "other": "other"})
def igamma(input: Array, other: Array) -> Array:
    """Compute the lower regularized incomplete gamma function."""
    a, b = _two_floats("igamma_cpu", input, other)
    a = jax.lax.stop_gradient(a)
    return _at_limits(special.gammainc(a, b), a, b, 1)


@op(inplace=True, backward="IgammacBackward0", saves={"self": "other", "other": "other"})
def igammac(input: Array, other: Array) -> Array:
    """Compute the upper regularized incomplete gamma function."""
    a, b = _two_floats("igammac_cpu", input, other)
    a = jax.lax.stop_gradient(a)
    return _at_limits(special.gammaincc(a, b), a, b, 0)


def _nextafter_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (a, b), (da, _) = primals, tangents
    return da * (a != b).astype(a.dtype)


_nextafter = with_jvp(jnp.nextafter, _nextafter_tangent)


@op(inplace=True, saves={"self": "*", "other": "*"})
def nextafter(input: Array, other: Array) -> Array:
    """Return the next number after `input` towards `other`; it moves as `input` does."""
    a, b = _two_floats("nextafter_cpu", input, other)
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
    from ..elementwise.powers import pow as power

    wide = _power_dtype(input, exponent)

    def widened(x: Any) -> Any:
        return x.astype(wide) if hasattr(x, "dtype") else jnp.asarray(x, wide)

    if not hasattr(exponent, "dtype"):
        return power(widened(input), exponent)
    return power(widened(input), widened(exponent))


@op(method=False, saves={"result": "*"})
def polar(abs: Array, angle: Array) -> Array:
    """Make the complex number of this size and angle."""
    if abs.dtype.kind != "f" or angle.dtype.kind != "f":  # nor bfloat16
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{scalar_name(abs.dtype)} and {scalar_name(angle.dtype)}"
        )
    if abs.dtype != angle.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_name(abs.dtype)} but got scalar type "
            f"{scalar_name(angle.dtype)} for second argument"
        )
    broadcast_shapes(abs.shape, angle.shape)
    if abs.dtype.itemsize < 4:
        raise NotImplementedError(f"\"polar_cpu\" not implemented for '{scalar_name(abs.dtype)}'")
    return jax.lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle))
