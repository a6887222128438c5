"""Special functions of statistics and physics: gamma, zeta, Bessel, normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from ...program.dtypes import cast, is_complex, promote, scalar_name
from ...program.op import op
from ..elementwise.operands import aligned, unsupported, with_jvp
from ..nn.checks import wide
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
_unary("i0", _i0, "Compute the modified Bessel function of order 0.", inplace=True)
_unary("i0e", _i0e, "Compute `i0` scaled by `exp(-|x|)`.", backward="SpecialI0EBackward0",
       saves=_BOTH, **_SPECIAL)  # fmt: skip
_unary("i1", _i1, "Compute the modified Bessel function of order 1.", backward="SpecialI1Backward0",
       saves=_BOTH, **_SPECIAL)  # fmt: skip
_unary("i1e", _i1e, "Compute `i1` scaled by `exp(-|x|)`.", backward="SpecialI1EBackward0",
       saves=_BOTH, **_SPECIAL)  # fmt: skip
_ndtri = with_jvp(
    special.ndtri, lambda r, x, dx: dx[0] * (math.sqrt(2 * math.pi) * jnp.exp(r * r / 2))
)
_unary("ndtri", _ndtri, "Compute the inverse of the normal distribution function.",
       backward="SpecialNdtriBackward0", saves=("result",), **_SPECIAL)  # fmt: skip
_unary("log_ndtr", special.log_ndtr, "Compute the logarithm of the normal distribution function.",
       backward="SpecialLogNdtrBackward0", saves=_BOTH, **_SPECIAL)  # fmt: skip
_unary(
    "ndtr",
    special.ndtr,
    "Compute the normal distribution function.",
    backward="MulBackward0",
    **_SPECIAL,
)


def _entr_value(x: Array) -> Array:
    positive = x > 0
    value = -x * jnp.log(jnp.where(positive, x, 1))
    return jnp.where(jnp.isnan(x) | positive, value, jnp.where(x == 0, x, -jnp.inf))


_entr = with_jvp(_entr_value, lambda r, x, dx: dx[0] * (-1 - jnp.log(x[0])))
_unary("entr", _entr, "Compute `-x log(x)`.", backward="SpecialEntrBackward0", **_SPECIAL)


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
