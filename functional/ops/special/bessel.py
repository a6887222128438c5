"""Bessel, Airy and scaled error functions of `torch.special`, by the methods of Cephes.

Each is a rational function or a Chebyshev series on each of two or three intervals. All pieces
are computed and the right one is chosen, so there is no branch in the program. None but `erfcx`
has a gradient in PyTorch, and none here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from ...program.dtypes import is_complex, is_floating, promote
from ...program.op import Decorator, ops_with
from ..elementwise.operands import unsupported, with_jvp
from . import cephes as c

op: Decorator = ops_with(elementwise=True)

Array = jax.Array

_PI_4, _3_PI_4 = np.pi / 4, 3 * np.pi / 4
_SQRT_2_PI, _2_PI, _1_SQRT_PI = np.sqrt(2 / np.pi), 2 / np.pi, 1 / np.sqrt(np.pi)


def single_or_double(name: str, input: Any) -> Array:
    """Cast `input` to floats; the kernels of these functions have no half and no complex."""
    if is_complex(input.dtype) or (is_floating(input.dtype) and input.dtype.itemsize < 4):
        raise unsupported(f"{name}_cpu", input.dtype)
    (x,) = promote(input, to_float=True)
    return x  # type: ignore[no-any-return]


def _entry(name: str, fn: Callable[[Array], Array], doc: str) -> None:
    def body(input: Array) -> Array:
        return fn(single_or_double(name, input))

    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    op(namespace="special", method=False, differentiable=False)(body)


def _number(x: Any, like: Array) -> Any:
    return np.asarray(x, like.dtype)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    out = jnp.zeros_like(x)
    for a in coefficients:
        out = out * x + _number(a, x)
    return out


def _ratio(x: Array, above: Sequence[float], below: Sequence[float]) -> Array:
    return _polynomial(x, above) / _polynomial(x, below)


def _chebyshev(x: Array, coefficients: Sequence[float]) -> Array:
    """Sum a Chebyshev series in `x / 2` as Clenshaw, its last coefficient halved."""
    a, p, q = jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros_like(x)
    for k in coefficients:
        p, q = q, a
        a = x * q - p + _number(k, x)
    return (a - p) * 0.5


def _far(x: Array, order: int, second: bool) -> Array:
    """Evaluate Hankel's asymptotic form of J or Y (`second`) of order 0 or 1, for x > 5."""
    p, q = ((c.J0_PP, c.J0_PQ), (c.J0_QP, c.J0_QQ))
    if order:
        p, q = ((c.J1_PP, c.J1_PQ), (c.J1_QP, c.J1_QQ))
    t = (5 / x) * (5 / x)
    even, odd = _ratio(t, *p), 5 / x * _ratio(t, *q)
    angle = x - _number(_3_PI_4 if order else _PI_4, x)
    wave = (
        even * jnp.sin(angle) + odd * jnp.cos(angle) if second
        else even * jnp.cos(angle) - odd * jnp.sin(angle)
    )  # fmt: skip
    return wave * _number(_SQRT_2_PI, x) / jnp.sqrt(x)


def _j0(x: Array) -> Array:
    x = jnp.abs(x)
    z = x * x
    zeros = (z - _number(5.78318596294678452118, x)) * (z - _number(30.4712623436620863991, x))
    near = jnp.where(x < 1e-5, 1 - z / 4, zeros * _ratio(z, c.J0_RP, c.J0_RQ))
    return jnp.where(x <= 5, near, _far(x, 0, False))


def _j1(x: Array) -> Array:
    size = jnp.abs(x)
    z = x * x
    zeros = (z - _number(14.6819706421238932572, x)) * (z - _number(49.2184563216946036703, x))
    near = _ratio(z, c.J1_RP, c.J1_RQ) * size * zeros
    value = jnp.where(size <= 5, near, _far(size, 1, False))
    return jnp.where(x < 0, -value, value)


def _y0(x: Array) -> Array:
    near = _ratio(x * x, c.Y0_YP, c.Y0_YQ) + _number(_2_PI, x) * jnp.log(x) * _j0(x)
    return _from_zero(x, jnp.where(x <= 5, near, _far(x, 0, True)), -jnp.inf)


def _y1(x: Array) -> Array:
    near = x * _ratio(x * x, c.Y1_YP, c.Y1_YQ)
    near = near + _number(_2_PI, x) * (_j1(x) * jnp.log(x) - 1 / x)
    return _from_zero(x, jnp.where(x <= 5, near, _far(x, 1, True)), -jnp.inf)


def _from_zero(x: Array, value: Array, at_zero: float) -> Array:
    return jnp.where(x == 0, at_zero, jnp.where(x < 0, jnp.nan, value)).astype(x.dtype)


_entry("bessel_j0", _j0, "Compute the Bessel function of the first kind, order 0.")
_entry("bessel_j1", _j1, "Compute the Bessel function of the first kind, order 1.")
_entry("bessel_y0", _y0, "Compute the Bessel function of the second kind, order 0; NaN below 0.")
_entry("bessel_y1", _y1, "Compute the Bessel function of the second kind, order 1; NaN below 0.")
_entry(
    "modified_bessel_i0",
    special.i0,
    "Compute the modified Bessel function of the first kind, order 0.",
)
_entry(
    "modified_bessel_i1",
    special.i1,
    "Compute the modified Bessel function of the first kind, order 1.",
)


def _k(order: int, scaled: bool) -> Callable[[Array], Array]:
    small, large = (c.K1_A, c.K1_B) if order else (c.K0_A, c.K0_B)

    def fn(x: Array) -> Array:
        near = _chebyshev(x * x - 2, small)
        log = jnp.log(x / 2)
        near = log * special.i1(x) + near / x if order else near - log * special.i0(x)
        far = _chebyshev(8 / x - 2, large) / jnp.sqrt(x)
        if scaled:
            near = near * jnp.exp(x)
        else:
            far = far * jnp.exp(-x)
        return _from_zero(x, jnp.where(x <= 2, near, far), jnp.inf)

    return fn


for _order in (0, 1):
    _kind = f"Compute the modified Bessel function of the second kind, order {_order}; NaN below 0."
    _entry(f"modified_bessel_k{_order}", _k(_order, False), _kind)
    _entry(f"scaled_modified_bessel_k{_order}", _k(_order, True), f"{_kind} Times `exp(x)`.")


def _spherical_j0(x: Array) -> Array:
    z = x * x
    # The Taylor series of sin(x) / x: PyTorch takes it below 0.5, where the quotient is coarse.
    terms = [(-1) ** k / np.prod(np.arange(1.0, 2 * k + 2)) for k in range(6, -1, -1)]
    value = jnp.where(jnp.abs(x) < 0.5, _polynomial(z, terms), jnp.sin(x) / x)
    return jnp.where(jnp.isinf(x), jnp.zeros_like(x), value)


_entry(
    "spherical_bessel_j0",
    _spherical_j0,
    "Compute the spherical Bessel function of order 0: `sin(x) / x`.",
)


def _airy(x: Array) -> Array:
    root = jnp.sqrt(jnp.abs(x))
    zeta = 2 * jnp.abs(x) * root / 3
    quarter = jnp.sqrt(root)
    z = 1 / zeta
    angle = zeta + _number(_PI_4, x)
    waves = jnp.sin(angle) * (1 + z * z * _ratio(z * z, c.AIRY_AFN, c.AIRY_AFD))
    waves = waves - jnp.cos(angle) * z * _ratio(z * z, c.AIRY_AGN, c.AIRY_AGD)
    left = _number(_1_SQRT_PI, x) / quarter * waves
    right = _number(_1_SQRT_PI, x) * _ratio(z, c.AIRY_AN, c.AIRY_AD)
    right = right / (2 * quarter * jnp.exp(zeta))
    value = jnp.where(x < -2.09, left, jnp.where(x >= 2.09, right, _airy_series(x)))
    value = jnp.where(x > 103.892, jnp.zeros_like(x), value)
    return jnp.where(jnp.isinf(x), jnp.nan, value).astype(x.dtype)


def _airy_series(x: Array) -> Array:
    """Sum Maclaurin's series; 16 terms are exact to the last bit for |x| < 2.1."""
    cube = jnp.where(jnp.abs(x) < 2.1, x, 0) ** 3
    f, g = jnp.ones_like(x), x
    m, n = f, g
    for k in range(16):
        m = m * cube / ((3 * k + 2) * (3 * k + 3))
        n = n * cube / ((3 * k + 3) * (3 * k + 4))
        f, g = f + m, g + n
    return _number(0.355028053887817239260, x) * f - _number(0.258819403792806798405, x) * g


_entry("airy_ai", _airy, "Compute the Airy function Ai.")


def _erfcx_value(x: Array) -> Array:
    # exp(x**2) rounds by x**2 ulps and erfc(x) underflows, so from 8 on the asymptotic series
    # (Abramowitz and Stegun 7.1.23) takes over; its 12 terms are exact to 1e-15 there.
    wide = x.astype(np.float64)
    z = 1 / (2 * wide * wide)
    series = jnp.ones_like(wide)
    for k in range(12, 0, -1):
        series = 1 - (2 * k - 1) * z * series
    far = _1_SQRT_PI / wide * series
    near = jnp.exp(wide * wide) * special.erfc(wide)
    return jnp.where(wide > 8, far, near).astype(x.dtype)


_erfcx = with_jvp(
    _erfcx_value, lambda result, xs, dxs: dxs[0] * (2 * xs[0] * result - 2 * float(_1_SQRT_PI))
)


@op(namespace="special", method=False, backward="SpecialErfcxBackward0",
    saves={"self": "*", "result": "*"})  # fmt: skip
def erfcx(input: Array) -> Array:
    """Compute the complementary error function scaled: `exp(x**2) * erfc(x)`."""
    return _erfcx(single_or_double("erfcx", input))
