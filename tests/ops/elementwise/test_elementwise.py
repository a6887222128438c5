"""Elementwise families against live PyTorch: values, dtypes, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from helpers.ops_nn import compare, faults, same, same_error, to_jax

import leafax
from leafax.functional.ops.elementwise import arithmetic as A
from leafax.functional.ops.elementwise import binary as B
from leafax.functional.ops.elementwise import bitwise as W
from leafax.functional.ops.elementwise import comparison as C
from leafax.functional.ops.elementwise import powers as P
from leafax.functional.ops.elementwise import rounding as R
from leafax.functional.ops.elementwise import ternary
from leafax.functional.ops.elementwise import unary as U
from leafax.functional.program.op import TABLE

NAN, INF = float("nan"), float("inf")
X = torch.tensor([[-2.5, -1.0, -0.3, 0.0], [0.4, 0.5, 1.5, 3.0]])
Y = torch.tensor([[1.5, -1.0, 2.0, 0.7], [0.4, -0.6, 1.2, -3.0]])
Z = torch.tensor([[0.0, 0.2, 2.0, -0.7], [1.0, 0.5, -1.2, 3.0]])
ROW = torch.tensor([0.3, -1.0, 2.0, 0.0])
POS = torch.tensor([0.1, 0.5, 0.9, 2.5])
UNIT = torch.tensor([-0.9, -0.4, 0.0, 0.3, 0.8])
I = torch.tensor([3, -2, 0, 1])  # noqa: E741
J = torch.tensor([2, -1, 3, 1])
SMALL = torch.tensor([3, 2, 0, 1], dtype=torch.uint8)
SHORT = torch.tensor([3, -2, 0, 1], dtype=torch.int16)
T = torch.tensor([True, False, True, False])
CPLX = torch.tensor([1 + 2j, -0.5j, 0j, -3.0 + 0j])
ZERO_D = torch.tensor(2.0)
ODD = torch.tensor([NAN, INF, -INF, -0.0, 0.0, 1.0])


def _rsub(x: Any, y: Any, **kw: Any) -> Any:
    return torch.rsub(x, y, **kw)


SMOOTH: list[tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (A.add, torch.add, (X, Y), {}),
    (A.add, torch.add, (X, ROW), {"alpha": 2.5}),
    (A.add, torch.add, (X, 2), {}),
    (A.sub, torch.sub, (X, ROW), {"alpha": 3}),
    (A.rsub, _rsub, (X, Y), {"alpha": 2}),
    (A.rsub, _rsub, (X, 2), {}),
    (A.mul, torch.mul, (X, ROW), {}),
    (A.mul, torch.mul, (X, ZERO_D), {}),
    (A.div, torch.div, (X, Y), {}),
    (A.div, torch.div, (X, Y), {"rounding_mode": "floor"}),
    (A.div, torch.div, (X, 0.7), {"rounding_mode": "trunc"}),
    (A.remainder, torch.remainder, (X, Y), {}),
    (A.remainder, torch.remainder, (X, 0.7), {}),
    (A.fmod, torch.fmod, (X, Y), {}),
    (A.neg, torch.neg, (X,), {}),
    (A.positive, torch.positive, (X,), {}),
    (A.abs, torch.abs, (X,), {}),
    (A.sign, torch.sign, (X,), {}),
    (ternary.addcmul, torch.addcmul, (X, Y, ROW), {"value": 0.5}),
    (ternary.addcdiv, torch.addcdiv, (X, ROW, Y), {"value": 2}),
    (ternary.lerp, torch.lerp, (X, Y, 0.3), {}),
    (ternary.lerp, torch.lerp, (X, Y, 0.8), {}),
    (ternary.lerp, torch.lerp, (X, Y, ROW), {}),
    *((P.pow, torch.pow, (X, n), {}) for n in (0, 1, 2, 3, 4, 7, 2.0)),
    *((P.pow, torch.pow, (POS, n), {}) for n in (0.5, -0.5, -1, -2, 1.7, -3)),
    (P.pow, torch.pow, (torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0])), {}),
    (P.pow, torch.pow, (torch.tensor([0.0, 0.0, 3.0, 2.0]), torch.tensor([2.0, 0.5, -1, 0])), {}),
    (P.pow, torch.pow, (2, X), {}),
    (P.pow, torch.pow, (0, POS), {}),
    (P.square, torch.square, (X,), {}),
    (P.reciprocal, torch.reciprocal, (Y,), {}),
    (P.sqrt, torch.sqrt, (POS,), {}),
    (P.sqrt, torch.sqrt, (torch.tensor([0.0, 4.0]),), {}),
    (P.rsqrt, torch.rsqrt, (POS,), {}),
    (R.floor, torch.floor, (X,), {}),
    (R.ceil, torch.ceil, (X,), {}),
    (R.trunc, torch.trunc, (X,), {}),
    (R.round, torch.round, (X,), {}),
    (R.round, torch.round, (X * 1.2345,), {"decimals": 2}),
    (R.round, torch.round, (X * 123.45,), {"decimals": -1}),
    (R.frac, torch.frac, (X,), {}),
    (R.clamp, torch.clamp, (X, -1, 1.5), {}),
    (R.clamp, torch.clamp, (X,), {"min": 0.5}),
    (R.clamp, torch.clamp, (X,), {"max": 0.5}),
    (R.clamp, torch.clamp, (X, ROW, Y + 3.5), {}),
    (R.clamp, torch.clamp, (X, 2, 1), {}),
    (R.clamp_min, torch.clamp_min, (X, 0), {}),
    (R.clamp_max, torch.clamp_max, (X, 0.4), {}),
    (R.maximum, torch.maximum, (X, Y), {}),
    (R.minimum, torch.minimum, (X, ROW), {}),
    (R.fmax, torch.fmax, (X, Y), {}),
    (R.fmin, torch.fmin, (X, Y), {}),
    (R.nan_to_num, torch.nan_to_num, (ODD,), {}),
    (R.nan_to_num, torch.nan_to_num, (ODD, 1.0, 2.0, 3.0), {}),
    (B.hypot, torch.hypot, (X, Y), {}),
    (B.atan2, torch.atan2, (X, Y), {}),
    (B.atan2, torch.atan2, (X * 0, Y * 0), {}),
    (B.copysign, torch.copysign, (X, Y), {}),
    (B.copysign, torch.copysign, (X, -1.0), {}),
    (B.logaddexp, torch.logaddexp, (X, ROW), {}),
    (B.logaddexp2, torch.logaddexp2, (X, Y), {}),
    (B.xlogy, torch.xlogy, (torch.tensor([0.0, 1, 2, 0.5]), POS), {}),
    (B.xlogy, torch.xlogy, (torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0])), {}),
    (B.angle, torch.angle, (X,), {}),
    *((getattr(U, n), getattr(torch, n), (X,), {}) for n in (
        "exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh",
        "sigmoid", "erf", "erfc", "sinc", "deg2rad", "rad2deg")),
    *((getattr(U, n), getattr(torch, n), (POS,), {}) for n in (
        "log", "log2", "log10", "log1p", "lgamma", "digamma")),
    *((getattr(U, n), getattr(torch, n), (UNIT,), {}) for n in (
        "asin", "acos", "atanh", "erfinv")),
    (U.acosh, torch.acosh, (POS + 1,), {}),
    (U.logit, torch.logit, (torch.tensor([0.2, 0.5, 0.9]),), {}),
    (U.logit, torch.logit, (torch.tensor([0.05, 0.1, 0.9, 1.2]), 0.1), {}),
    (C.where, torch.where, (X > 0, X, ROW), {}),
    (C.where, torch.where, (X > 0, X, 2), {}),
    (C.masked_fill, torch.masked_fill, (X, X > 0, 2.5), {}),
    (C.masked_fill, torch.masked_fill, (X, X > 0, ZERO_D), {}),
    (C.masked_fill, torch.masked_fill, (ROW, X > 0, 1), {}),
]  # fmt: skip


def _label(case: Any) -> str:
    rest = "-".join(str(a) for a in case[2][1:] if not isinstance(a, torch.Tensor))
    return f"{case[0].__name__}-{rest}"


@pytest.mark.quick(16)
@pytest.mark.quick(16)
@pytest.mark.parametrize("case", SMOOTH, ids=_label)
def test_values_and_gradients(case: Any) -> None:
    body, reference, args, kwargs = case
    loose = 1e-4 if body.__name__ in ("lgamma", "digamma", "erfinv", "tan") else None
    compare(body, reference, args, tolerance=loose, **kwargs)


EXACT: list[tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (A.add, torch.add, (I, SMALL), {"alpha": 2}),
    (A.add, torch.add, (T, T), {}),
    (A.add, torch.add, (T, I), {"alpha": 2}),
    (A.add, torch.add, (I, 2.5), {}),
    (A.add, torch.add, (SMALL, True), {}),
    (A.add, torch.add, (SHORT, ZERO_D), {}),
    (A.sub, torch.sub, (SMALL, SHORT), {}),
    (A.mul, torch.mul, (T, T), {}),
    (A.mul, torch.mul, (CPLX, 2.0), {}),
    (A.mul, torch.mul, (CPLX, CPLX), {}),
    (A.div, torch.div, (I, J), {}),
    (A.div, torch.div, (I, J), {"rounding_mode": "floor"}),
    (A.div, torch.div, (I, J), {"rounding_mode": "trunc"}),
    (A.floor_divide, torch.floor_divide, (ODD, 0.7), {}),
    (A.floor_divide, torch.floor_divide, (X, 0.0), {}),
    (A.floor_divide, torch.floor_divide, (X, Y), {}),
    (A.remainder, torch.remainder, (I, J), {}),
    (A.remainder, torch.remainder, (2, Y), {}),
    (A.remainder, torch.remainder, (X, torch.tensor(INF)), {}),
    (A.fmod, torch.fmod, (I, J), {}),
    (A.abs, torch.abs, (CPLX,), {}),
    (A.abs, torch.abs, (SHORT,), {}),
    (A.sign, torch.sign, (ODD,), {}),
    (A.sign, torch.sign, (T,), {}),
    (A.sgn, torch.sgn, (CPLX,), {}),
    (A.sgn, torch.sgn, (X,), {}),
    (ternary.addcmul, torch.addcmul, (I, I, J), {"value": 2.5}),
    (P.pow, torch.pow, (I, 2), {}),
    (P.pow, torch.pow, (I, 0), {}),
    (P.pow, torch.pow, (T, 2), {}),
    (P.pow, torch.pow, (T, True), {}),
    (P.pow, torch.pow, (2, T), {}),
    (P.pow, torch.pow, (I, J), {}),
    (P.pow, torch.pow, (I, -J), {}),
    (P.pow, torch.pow, (SMALL, 2), {}),
    (P.pow, torch.pow, (torch.abs(I), 2.5), {}),
    (P.pow, torch.pow, (X, I), {}),
    (P.pow, torch.pow, (CPLX, 2), {}),
    (P.square, torch.square, (T,), {}),
    (P.sqrt, torch.sqrt, (SMALL,), {}),
    (P.sqrt, torch.sqrt, (CPLX,), {}),
    (P.reciprocal, torch.reciprocal, (I,), {}),
    (R.floor, torch.floor, (I,), {}),
    (R.clamp, torch.clamp, (I, 0.5), {}),
    (R.clamp, torch.clamp, (I, 0, 1), {}),
    (R.clamp, torch.clamp, (T, 0, 1), {}),
    (R.clamp, torch.clamp, (ODD, -1, 1), {}),
    (R.clamp, torch.clamp, (X, NAN), {}),
    (R.clamp, torch.clamp, (ODD, X[0, 0], X[1, 3]), {}),
    (R.clamp_min, torch.clamp_min, (SMALL, 1), {}),
    (R.maximum, torch.maximum, (T, ~T), {}),
    (R.maximum, torch.maximum, (ODD, ZERO_D), {}),
    (R.fmax, torch.fmax, (ODD, ZERO_D), {}),
    (R.fmin, torch.fmin, (ODD, ODD.flip(0)), {}),
    (R.nan_to_num, torch.nan_to_num, (CPLX,), {}),
    (R.nan_to_num, torch.nan_to_num, (I,), {}),
    (B.atan2, torch.atan2, (I, J), {}),
    (B.copysign, torch.copysign, (I, -1), {}),
    (B.copysign, torch.copysign, (ODD, -1.0), {}),
    (B.xlogy, torch.xlogy, (I, 2), {}),
    (B.xlogy, torch.xlogy, (0, ODD), {}),
    (B.heaviside, torch.heaviside, (ODD, ZERO_D), {}),
    (B.real, torch.real, (CPLX,), {}),
    (B.imag, torch.imag, (CPLX,), {}),
    (B.conj, torch.conj_physical, (CPLX,), {}),
    (B.conj, torch.conj_physical, (I,), {}),
    (B.angle, torch.angle, (CPLX,), {}),
    (B.angle, torch.angle, (I,), {}),
    (B.angle, torch.angle, (ODD,), {}),
    (B.view_as_real, torch.view_as_real, (CPLX,), {}),
    (B.view_as_complex, torch.view_as_complex, (torch.rand(3, 2),), {}),
    (B.complex_, torch.complex, (X, Y), {}),
    *((getattr(W, f"bitwise_{n}"), getattr(torch, f"bitwise_{n}"), a, {}) for a in (
        (I, J), (SMALL, SHORT), (I, T), (SMALL, 3), (6, I)) for n in ("and", "or", "xor")),
    (W.bitwise_xor, torch.bitwise_xor, (T, ~T), {}),
    *((W.bitwise_not, torch.bitwise_not, (a,), {}) for a in (I, SMALL, T)),
    *((getattr(W, f"bitwise_{n}_shift"), getattr(torch, f"bitwise_{n}_shift"), a, {}) for a in (
        (I, 1), (I, 64), (I, -1), (SHORT, 20), (SMALL, 1), (SMALL, 9), (3, J.abs()))
        for n in ("left", "right")),
    *((getattr(W, f"logical_{n}"), getattr(torch, f"logical_{n}"), (a, b), {}) for n in (
        "and", "or", "xor") for a, b in ((I, T), (ROW, J), (CPLX, CPLX))),
    (W.logical_not, torch.logical_not, (ROW,), {}),
    (W.logical_not, torch.logical_not, (T,), {}),
    *((getattr(U, n), getattr(torch, n), (a,), {}) for a in (ODD, I, T)
      for n in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal")),
    *((getattr(U, n), getattr(torch, n), (CPLX + 0.1,), {}) for n in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "tan", "tanh", "sigmoid",
        "acos", "sinc")),
    *((getattr(U, n), getattr(torch, n), (a,), {}) for a in (I.abs(), SMALL)
      for n in ("exp", "log", "sin", "sigmoid", "erf", "digamma", "deg2rad", "sinc")),
    *((getattr(U, n), getattr(torch, n), (ODD,), {}) for n in (
        "exp", "log", "log1p", "sigmoid", "erf", "erfinv", "lgamma", "digamma", "tanh")),
    *((getattr(C, n), getattr(torch, n), a, {}) for n in ("eq", "ne", "lt", "le", "gt", "ge")
      for a in ((X, ROW), (I, J), (I, 0.5), (T, 1), (ODD, ODD), (SMALL, SHORT))),
    (C.eq, torch.eq, (CPLX, CPLX), {}),
    (C.isclose, torch.isclose, (ODD, ODD), {}),
    (C.isclose, torch.isclose, (ODD, ODD), {"equal_nan": True}),
    (C.isclose, torch.isclose, (X, X + 1e-6), {"rtol": 0.0, "atol": 1e-5}),
    (C.isclose, torch.isclose, (I * 1000, I * 1001), {"rtol": 1e-2}),
    (C.where, torch.where, (T, 1, 2.0), {}),
    (C.where, torch.where, (T, I, 2.0), {}),
    (C.where, torch.where, (T, 1, 2), {}),
    (C.masked_fill, torch.masked_fill, (I, T, 2.5), {}),
]  # fmt: skip


@pytest.mark.quick(73)
@pytest.mark.quick(73)
@pytest.mark.parametrize("case", EXACT, ids=_label)
def test_dtypes_and_special_values(case: Any) -> None:
    body, reference, args, kwargs = case
    with jax.enable_x64(True):
        ours, theirs = body(*map(to_jax, args), **kwargs), reference(*args, **kwargs)
        same(ours, theirs, 0 if theirs.dtype == torch.bool else 2e-5)


WRONG: list[tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (A.add, torch.add, (X, Y.T), {}),
    (A.add, torch.add, (I, I), {"alpha": 1.5}),
    (A.add, torch.add, (I, I), {"alpha": True}),
    (A.add, torch.add, (X, X), {"alpha": 1j}),
    (A.sub, torch.sub, (T, T), {}),
    (A.sub, torch.sub, (T, I), {}),
    (A.rsub, _rsub, (T, 1), {}),
    (A.div, torch.div, (I, 2), {"rounding_mode": "foo"}),
    (A.div, torch.div, (CPLX, CPLX), {"rounding_mode": "trunc"}),
    (A.floor_divide, torch.floor_divide, (T, T), {}),
    (A.remainder, torch.remainder, (CPLX, CPLX), {}),
    (A.fmod, torch.fmod, (T, T), {}),
    (A.neg, torch.neg, (T,), {}),
    (A.positive, torch.positive, (T,), {}),
    (A.abs, torch.abs, (T,), {}),
    (A.sign, torch.sign, (CPLX,), {}),
    (ternary.addcmul, torch.addcmul, (T, T, T), {}),
    (ternary.addcmul, torch.addcmul, (X, X, Y.T), {}),
    (ternary.addcdiv, torch.addcdiv, (X, I, I), {}),
    (ternary.lerp, torch.lerp, (X, I, 0.5), {}),
    (ternary.lerp, torch.lerp, (X, X, X.double()), {}),
    (ternary.lerp, torch.lerp, (I, I, 0.5), {}),
    (P.pow, torch.pow, (I, -1), {}),
    (P.pow, torch.pow, (T, T), {}),
    *((getattr(R, n), getattr(torch, n), (a,), {}) for n in ("floor", "ceil", "trunc")
      for a in (T, CPLX)),
    (R.round, torch.round, (T,), {}),
    (R.round, torch.round, (CPLX,), {}),
    (R.round, torch.round, (I,), {"decimals": 1}),
    (R.frac, torch.frac, (I,), {}),
    (R.clamp, torch.clamp, (X,), {}),
    (R.clamp, torch.clamp, (CPLX, 0, 1), {}),
    (R.clamp, torch.clamp, (T, False), {}),
    (R.clamp, torch.clamp, (X, torch.rand(3, 4)), {}),
    (R.maximum, torch.maximum, (CPLX, CPLX), {}),
    (R.fmin, torch.fmin, (CPLX, CPLX), {}),
    (B.hypot, torch.hypot, (I, I), {}),
    (B.atan2, torch.atan2, (CPLX, CPLX), {}),
    (B.copysign, torch.copysign, (CPLX, CPLX), {}),
    (B.logaddexp, torch.logaddexp, (T, T), {}),
    (B.logaddexp2, torch.logaddexp2, (CPLX, CPLX), {}),
    (B.xlogy, torch.xlogy, (CPLX, CPLX), {}),
    (B.heaviside, torch.heaviside, (I, ROW), {}),
    (B.heaviside, torch.heaviside, (CPLX, CPLX), {}),
    (B.imag, torch.imag, (X,), {}),
    (B.view_as_real, torch.view_as_real, (X,), {}),
    *((B.view_as_complex, torch.view_as_complex, (a,), {}) for a in (X, I, ZERO_D)),
    (B.complex_, torch.complex, (X, Y.double()), {}),
    (W.bitwise_and, torch.bitwise_and, (X, X), {}),
    (W.bitwise_or, torch.bitwise_or, (I, 2.5), {}),
    (W.bitwise_not, torch.bitwise_not, (X,), {}),
    (W.bitwise_left_shift, torch.bitwise_left_shift, (X, 1), {}),
    (W.bitwise_right_shift, torch.bitwise_right_shift, (T, T), {}),
    *((getattr(U, n), getattr(torch, n), (CPLX,), {}) for n in (
        "erf", "erfc", "erfinv", "lgamma", "digamma", "logit", "isposinf", "isneginf", "signbit",
        "deg2rad", "rad2deg")),
    *((getattr(C, n), getattr(torch, n), (CPLX, CPLX), {}) for n in ("lt", "le", "gt", "ge")),
    (C.isclose, torch.isclose, (I, X), {}),
    (C.isclose, torch.isclose, (X, X), {"rtol": -1.0}),
    (C.where, torch.where, (I, X, X), {}),
    (C.where, torch.where, (X > 0, X, torch.rand(3, 4)), {}),
    (C.masked_fill, torch.masked_fill, (X, X, 2), {}),
    (C.masked_fill, torch.masked_fill, (X, X > 0, ROW), {}),
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=_label)
def test_errors(case: Any) -> None:
    body, reference, args, kwargs = case
    with jax.enable_x64(True):
        made = [to_jax(a) for a in args]
    same_error(lambda: body(*made, **kwargs), lambda: reference(*args, **kwargs))


@pytest.mark.parametrize("check", [A._zero_division])
def test_integer_division_by_zero_is_a_fault(check: Any) -> None:
    assert faults(check, I, I) == [(RuntimeError, "ZeroDivisionError")]
    assert faults(check, I, J) == [] and faults(check, X, 0) == []
    assert faults(check, I, 0) == [(RuntimeError, "ZeroDivisionError")]


def test_number_as_runtime_input_gives_the_same_dtype() -> None:
    """A weakly typed scalar promotes as the Python number that it was."""
    with jax.enable_x64(True):
        for body, x, number in (
            (A.mul, X, 2), (A.add, I, 2.5), (P.pow, X, 2), (P.pow, I, 3), (R.clamp_min, I, 1),
            (C.masked_fill, X, None), (ternary.lerp, X, None), (C.eq, I, 2.5),
        ):  # fmt: skip
            if number is None:
                rest: tuple[Any, ...] = (to_jax(X > 0),) if body is C.masked_fill else (to_jax(Y),)
                number = 0.75
            else:
                rest = ()
            runtime = jax.jit(body)(to_jax(x), *rest, number)
            fixed = body(to_jax(x), *rest, number)
            assert runtime.dtype == fixed.dtype and not runtime.weak_type
            np.testing.assert_allclose(runtime, fixed, rtol=1e-6)


def test_second_derivatives() -> None:
    with jax.enable_x64(True):
        for body, reference, x in (
            (lambda a: P.pow(a, 2.5), lambda a: a.pow(2.5), POS),
            (lambda a: P.pow(a, a), lambda a: a.pow(a), POS),
            (lambda a: B.xlogy(a, a), lambda a: torch.xlogy(a, a), POS),
            (lambda a: B.hypot(a, a + 1), lambda a: torch.hypot(a, a + 1), POS),
        ):
            x = x.double().requires_grad_()
            (first,) = torch.autograd.grad(reference(x).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x)

            def slope(a: Any, body: Any = body) -> Any:
                return jax.grad(lambda v: jnp.sum(body(v)))(a)

            ours = jax.grad(lambda v, slope=slope: jnp.sum(slope(v)))(to_jax(x))
            np.testing.assert_allclose(ours, second.numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    "module", ["arithmetic", "binary", "bitwise", "comparison", "extrema", "powers",
               "reduction", "rounding", "scans", "sorting", "ternary", "torch_norm", "unary"],
)  # fmt: skip
def test_columns_name_what_torch_has(module: str) -> None:
    """Function, method and in-place variant exist in torch exactly where the table says so."""
    entries = {
        e.qualified: e for e in TABLE.values() if e.fn.__module__.rpartition(".")[2] == module
    }
    assert entries
    for entry in entries.values():
        base = entry.name.removesuffix(".dim")
        assert hasattr(torch, base) or not entry.function, base
        assert hasattr(torch.Tensor, base) == entry.method or base == "where", base
        if "." not in entry.name:
            assert hasattr(torch.Tensor, base + "_") == entry.inplace, base
        for alias in entry.aliases:
            assert hasattr(torch, alias), alias


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("by", ["number", "tensor", "row", "column", "sum", "mean", "in place"])
def test_quotients_are_rounded_as_divisions(by: str, dtype: str) -> None:
    """XLA multiplies by the reciprocal of what is broadcast, which is off in every third case."""
    values = np.random.default_rng(0).normal(size=(33, 7))
    calls = {
        "number": lambda t, x: x / 3, "tensor": lambda t, x: x / t.tensor(1.1, dtype=x.dtype),
        "row": lambda t, x: x / x[:1], "column": lambda t, x: x / x[:, :1],
        "sum": lambda t, x: x / x[0, 0].exp(), "mean": lambda t, x: x[:, :3].contiguous().mean(1),
        "in place": lambda t, x: x.clone().div_(7),
    }  # fmt: skip
    ours, theirs = (
        calls[by](t, t.tensor(values, dtype=getattr(t, dtype))).tolist() for t in (leafax, torch)
    )
    if by in ("sum", "mean"):  # of functions and sums with roundings of their own
        np.testing.assert_allclose(ours, theirs, rtol=2e-7 if dtype == "float32" else 4e-16)
    else:
        assert ours == theirs
