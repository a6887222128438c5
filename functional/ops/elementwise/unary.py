"""Functions of one number, elementwise. Integers become the default floating point dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from ...program.dtypes import cast, finfo, is_complex, promote
from ...program.op import Decorator, ops_with
from ..nn.checks import wide
from ..special.polygamma import trigamma
from . import complex_numbers
from .operands import BOOL, refuse, unmoved, with_jvp

op: Decorator = ops_with(elementwise=True)

Array = jax.Array

_SELF = {"self": "*"}
_RESULT = {"result": "*"}


def _entry(
    name: str,
    fn: Callable[[Array], Array],
    doc: str,
    saves: Mapping[str, str] = _SELF,
    no_complex: str | None = None,
    **columns: Any,
) -> Callable[[Array], Array]:
    """Enter `fn`, a function of a float array; `no_complex` is the kernel that lacks complex."""

    def body(input: Array) -> Array:
        if no_complex:
            refuse(no_complex, input.dtype, 3)
        (x,) = promote(input, to_float=True)
        return fn(x)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return op(saves=saves, inplace=True, **columns)(body)


def _in_float32(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Compute halves in float32 and round once, as PyTorch's kernels do."""
    return lambda x: fn(wide(x)).astype(x.dtype)


@jax.custom_jvp
def _digamma(x: Array) -> Array:
    # At 0 PyTorch's has the sign of 1 / -x, jax's is NaN.
    return jnp.where(x == 0, -1 / x, special.digamma(jnp.where(x == 0, 1, x)))


@_digamma.defjvp
def _digamma_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # JAX's own derivative, a zeta function, is wrong for negative numbers.
    return _digamma(*primals), trigamma(*primals) * tangents[0]


_lgamma = with_jvp(lambda x: lax.lgamma(x), lambda r, x, dx: dx[0] * _digamma(x[0]))


def _sinc_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    """Differentiate by PyTorch's `sinc_backward`: near 0 JAX's is a difference of ones."""
    (x,), (dx,) = primals, tangents
    t, square = x * np.pi, x * x * np.pi
    slope = (t * jnp.cos(t) - jnp.sin(t)) / jnp.where(square == 0, 1, square)
    return dx * jnp.where(square == 0, 0, slope)


_sinc = with_jvp(lambda x: jnp.sinc(x), _sinc_tangent)


def _logit_tangent(result: Array, primals: Any, tangents: Any) -> Array:
    (x,), (dx,) = primals, tangents
    return dx * jnp.where((x < 0) | (x > 1), jnp.nan, 1 / (x * (1 - x)))


_logit = with_jvp(lambda x: lax.log(x / (1 - x)), _logit_tangent)


def _log2_value(x: Array) -> Array:
    """Compute `log2` exactly at powers of 2, which the quotient of two logarithms is not."""
    if is_complex(x.dtype):
        return jnp.log2(x)
    part, power = jnp.frexp(wide(x))
    few = part < np.sqrt(0.5)  # so that near 1 no digits cancel
    part, power = jnp.where(few, part * 2, part), jnp.where(few, power - 1, power)
    log = power.astype(part.dtype) + lax.log(part) * np.log2(np.e)
    normal = lax.is_finite(x) & (x >= finfo(x.dtype).tiny)
    return jnp.where(normal, log, lax.log(wide(x)) * np.log2(np.e)).astype(x.dtype)


_log2 = with_jvp(_log2_value, lambda r, x, dx: dx[0] / (x[0] * np.log(2).astype(x[0].dtype)))


def _exp2(x: Array) -> Array:
    """Compute a power: XLA's `exp2` multiplies the exponent first, and loses up to 80 ulps."""
    if is_complex(x.dtype):
        return complex_numbers.exp2(x)
    return lax.pow(jnp.full_like(x, 2), x)


exp = _entry("exp", complex_numbers.exp, "Raise e to it.", _RESULT)
exp2 = _entry("exp2", _in_float32(_exp2), "Raise 2 to it.", _RESULT)
expm1 = _entry(
    "expm1", _in_float32(complex_numbers.expm1), "Take `exp(x) - 1`, exact near 0.", _RESULT
)
log = _entry("log", lax.log, "Take the natural logarithm.")
log2 = _entry("log2", _log2, "Take the logarithm to base 2.")
log10 = _entry("log10", _in_float32(jnp.log10), "Take the logarithm to base 10.")
log1p = _entry(
    "log1p", complex_numbers.log1p, "Take `log(1 + x)` near 0 too.", backward="Log1PBackward0"
)
sin = _entry("sin", complex_numbers.sin, "Take the sine.")
cos = _entry("cos", complex_numbers.cos, "Take the cosine.")
tan = _entry("tan", complex_numbers.tan, "Take the tangent.", _RESULT)
asin = _entry(
    "asin", _in_float32(complex_numbers.asin), "Take the inverse sine.", aliases=("arcsin",)
)
acos = _entry(
    "acos", _in_float32(complex_numbers.acos), "Take the inverse cosine.", aliases=("arccos",)
)
atan = _entry("atan", complex_numbers.atan, "Take the inverse tangent.", aliases=("arctan",))
sinh = _entry("sinh", complex_numbers.sinh, "Take the hyperbolic sine.")
cosh = _entry("cosh", complex_numbers.cosh, "Take the hyperbolic cosine.")
tanh = _entry("tanh", complex_numbers.tanh, "Take the hyperbolic tangent.", _RESULT)
asinh = _entry("asinh", _in_float32(complex_numbers.asinh), "Invert `sinh`.", aliases=("arcsinh",))
acosh = _entry("acosh", _in_float32(complex_numbers.acosh), "Invert `cosh`.", aliases=("arccosh",))
atanh = _entry("atanh", _in_float32(complex_numbers.atanh), "Invert `tanh`.", aliases=("arctanh",))
sigmoid = _entry("sigmoid", _in_float32(lax.logistic), "Take `1 / (1 + exp(-x))`.", _RESULT)
erf = _entry("erf", lax.erf, "Take the error function.", no_complex="erf_vml_cpu")
erfc = _entry("erfc", lax.erfc, "Take `1 - erf(x)`.", no_complex="erfc_vml_cpu")
erfinv = _entry("erfinv", lax.erf_inv, "Invert `erf`.", no_complex="erfinv_vml_cpu")
lgamma = _entry("lgamma", _lgamma, "Take the logarithm of |gamma(x)|.", no_complex="lgamma_vml_cpu")
digamma = _entry("digamma", _digamma, "Take the derivative of `lgamma`.", no_complex="digamma")
sinc = _entry("sinc", _in_float32(_sinc), "Take `sin(pi x) / (pi x)`, 1 at 0.")


def _degrees(name: str, x: Array, factor: float) -> Array:
    if is_complex(x.dtype):
        raise RuntimeError(f"{name} is not supported for complex tensors.")
    (x,) = promote(x, to_float=True)
    return (wide(x) * factor).astype(x.dtype)


@op(backward="Deg2RadBackward0", inplace=True)
def deg2rad(input: Array) -> Array:
    """Turn degrees into radians."""
    return _degrees("deg2rad", input, 0.017453292519943295769236907684886)


@op(backward="Rad2DegBackward0", inplace=True)
def rad2deg(input: Array) -> Array:
    """Turn radians into degrees."""
    return _degrees("rad2deg", input, 57.295779513082320876798154814105)


@op(saves=_SELF, inplace=True)
def logit(input: Array, eps: float | None = None) -> Array:
    """Invert `sigmoid`, after a clamp to [eps, 1 - eps]; outside that the gradient is 0."""
    refuse("logit_cpu", input.dtype, 3)
    (x,) = promote(input, to_float=True)
    if eps is not None:
        low, high = cast(eps, x.dtype), cast(1 - eps, x.dtype)
        x = jnp.where(x < low, low, jnp.where(x > high, high, unmoved(x)))
    return _logit(x)


def _no_complex(name: str, x: Array) -> None:
    if is_complex(x.dtype):
        raise RuntimeError(f"{name} does not support complex inputs.")


@op(differentiable=False)
def isnan(input: Array) -> Array:
    """Return True where it is NaN."""
    return input != input


@op(differentiable=False)
def isinf(input: Array) -> Array:
    """Return True where it is infinite."""
    return jnp.isinf(input)


@op(differentiable=False)
def isfinite(input: Array) -> Array:
    """Return True where it is neither infinite nor NaN."""
    return jnp.isfinite(input)


@op(differentiable=False)
def isposinf(input: Array) -> Array:
    """Return True where it is +infinity."""
    _no_complex("isposinf", input)
    return jnp.isposinf(input)


@op(differentiable=False)
def isneginf(input: Array) -> Array:
    """Return True where it is -infinity."""
    _no_complex("isneginf", input)
    return jnp.isneginf(input)


@op(differentiable=False)
def isreal(input: Array) -> Array:
    """Return True where the imaginary part is 0."""
    return jnp.isreal(input)


@op(differentiable=False)
def signbit(input: Array) -> Array:
    """Return True where the sign is minus, that of -0.0 too."""
    if is_complex(input.dtype):
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if input.dtype == BOOL or input.dtype.kind == "u":
        return jnp.zeros(input.shape, BOOL)
    return jnp.signbit(input)
