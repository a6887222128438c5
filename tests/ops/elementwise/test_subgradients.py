"""Derivatives at ties, zeros and borders: PyTorch's, in first and second order."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import leafax

INF = math.inf
CASES: dict[str, Any] = {
    "abs": (lambda t, x: x.abs(), [-1.0, 0.0, 2.0]),
    "sign": (lambda t, x: x.sign(), [-1.0, 0.0, 2.0]),
    "relu": (lambda t, x: x.relu(), [-1.0, 0.0, 2.0]),
    "leaky_relu": (lambda t, x: t.nn.functional.leaky_relu(x, 0.1), [-1.0, 0.0, 2.0]),
    "relu6": (lambda t, x: t.nn.functional.relu6(x), [0.0, 3.0, 6.0]),
    "elu": (lambda t, x: t.nn.functional.elu(x), [-1.0, 0.0, 2.0]),
    "hardtanh": (lambda t, x: t.nn.functional.hardtanh(x), [-1.0, 0.0, 1.0]),
    "hardsigmoid": (lambda t, x: t.nn.functional.hardsigmoid(x), [-3.0, 0.0, 3.0]),
    "hardswish": (lambda t, x: t.nn.functional.hardswish(x), [-3.0, 0.0, 3.0]),
    "softshrink": (lambda t, x: t.nn.functional.softshrink(x), [-0.5, 0.0, 0.5]),
    "threshold": (lambda t, x: t.nn.functional.threshold(x, 1.0, 5.0), [0.5, 1.0, 2.0]),
    "clamp": (lambda t, x: x.clamp(-1, 1), [-1.0, 0.5, 1.0]),
    "clamp tensor": (lambda t, x: t.clamp(x, t.full_like(x, 0.5)), [0.5, 0.0, 1.0]),
    "max": (lambda t, x: x.max(), [1.0, 3.0, 3.0]),
    "max dim": (lambda t, x: x.max(0).values, [3.0, 3.0, 1.0]),
    "amax": (lambda t, x: x.amax(), [1.0, 3.0, 3.0]),
    "min": (lambda t, x: x.min(), [1.0, 1.0, 3.0]),
    "median": (lambda t, x: x.median(), [2.0, 2.0, 2.0]),
    "maximum": (lambda t, x: t.maximum(x, x.flip(0)), [1.0, 2.0, 1.0]),
    "minimum": (lambda t, x: t.minimum(x, t.ones_like(x)), [1.0, 0.0, 2.0]),
    "fmax": (lambda t, x: t.fmax(x, t.ones_like(x)), [1.0, 0.0, 2.0]),
    "sort": (lambda t, x: x.sort().values.cumsum(0), [2.0, 1.0, 2.0]),
    "cummax": (lambda t, x: x.cummax(0).values, [2.0, 2.0, 1.0]),
    "norm": (lambda t, x: x.norm(), [0.0, 0.0, 0.0]),
    "norm 1": (lambda t, x: x.norm(1), [0.0, -1.0, 2.0]),
    "norm 3": (lambda t, x: x.norm(3), [0.0, 0.0, 0.0]),
    "norm inf": (lambda t, x: x.norm(INF), [-2.0, 2.0, 1.0]),
    "vector norm 0": (lambda t, x: t.linalg.vector_norm(x, 0), [0.0, 1.0, 2.0]),
    "dist": (lambda t, x: t.dist(x, t.ones_like(x)), [1.0, 1.0, 1.0]),
    "pairwise": (
        lambda t, x: t.nn.functional.pairwise_distance(x, t.ones_like(x), eps=0.0), [1.0, 1.0, 1.0]
    ),
    "cosine": (lambda t, x: t.cosine_similarity(x, t.ones_like(x), 0), [0.0, 0.0, 0.0]),
    "prod": (lambda t, x: x.prod(), [0.0, 2.0, 3.0]),
    "prod two zeros": (lambda t, x: x.prod(), [0.0, 0.0, 3.0]),
    "cumprod": (lambda t, x: x.cumprod(0), [2.0, 0.0, 3.0]),
    "std": (lambda t, x: x.std(), [1.0, 1.0, 1.0]),
    "std of one": (lambda t, x: x[:1].std(unbiased=False), [1.0, 2.0, 3.0]),
    "var": (lambda t, x: x.var(), [1.0, 1.0, 1.0]),
    "sqrt": (lambda t, x: x.sqrt(), [0.0, 1.0, 4.0]),
    "rsqrt": (lambda t, x: x.rsqrt(), [0.0, 1.0, 4.0]),
    "reciprocal": (lambda t, x: x.reciprocal(), [0.0, 1.0, 4.0]),
    "log": (lambda t, x: x.log(), [0.0, 1.0, 4.0]),
    "pow 0": (lambda t, x: x**0, [0.0, 1.0, 4.0]),
    "pow 1": (lambda t, x: x**1, [0.0, 1.0, 4.0]),
    "pow 2": (lambda t, x: x**2, [0.0, 1.0, -4.0]),
    "pow half": (lambda t, x: x**0.5, [0.0, 1.0, 4.0]),
    "pow exponent": (lambda t, x: t.zeros_like(x) ** x, [0.0, 1.0, 2.0]),
    "xlogy": (lambda t, x: t.xlogy(x, t.zeros_like(x)), [0.0, 1.0, 2.0]),
    "where nan": (lambda t, x: t.where(x > 0, x, (x * 0).log()), [1.0, 2.0, 3.0]),
    "atan2": (lambda t, x: t.atan2(x, t.zeros_like(x)), [0.0, 1.0, -1.0]),
    "hypot": (lambda t, x: t.hypot(x, t.zeros_like(x)), [0.0, 1.0, -1.0]),
    "fmod": (lambda t, x: x.fmod(2.0), [2.0, 1.0, -4.0]),
    "remainder": (lambda t, x: x.remainder(2.0), [2.0, 1.0, -4.0]),
    "frac": (lambda t, x: x.frac(), [2.0, 1.5, -4.0]),
    "sinc": (lambda t, x: x.sinc(), [0.0, 1.0, 0.5]),
    "i0": (lambda t, x: t.i0(x), [0.0, 1.0, -2.0]),
    "i0e": (lambda t, x: t.special.i0e(x), [0.0, 1.0, -2.0]),
    "acos": (lambda t, x: x.acos(), [0.0, 1.0, -1.0]),
    "logsumexp": (lambda t, x: x.logsumexp(0), [-INF, 1.0, 2.0]),
    "softmax": (lambda t, x: x.softmax(0), [-INF, 1.0, 2.0]),
    "huber": (
        lambda t, x: t.nn.functional.huber_loss(x, t.zeros_like(x), reduction="none"),
        [1.0, -1.0, 0.0],
    ),
    "smooth_l1": (
        lambda t, x: t.nn.functional.smooth_l1_loss(x, t.zeros_like(x), reduction="none"),
        [1.0, -1.0, 0.0],
    ),
    "l1": (
        lambda t, x: t.nn.functional.l1_loss(x, t.zeros_like(x), reduction="none"),
        [1.0, -1.0, 0.0],
    ),
    "max_pool": (
        lambda t, x: t.nn.functional.max_pool1d(x.reshape(1, 1, 3), 2, 1), [2.0, 2.0, 2.0]
    ),
    "max nan": (lambda t, x: x.max(), [1.0, math.nan, math.nan]),
    "min nan": (lambda t, x: x.min(), [math.nan, math.nan, math.nan]),
    "aminmax nan": (lambda t, x: sum(t.aminmax(x)), [1.0, math.nan, 2.0]),
    "aminmax": (lambda t, x: sum(t.aminmax(x, dim=0)), [1.0, 2.0, 1.0]),
    "nan_to_num": (lambda t, x: x.nan_to_num(), [math.nan, INF, 1.0]),
    "quantile": (lambda t, x: x.quantile(0.5), [1.0, 1.0, 1.0]),
    "trace of svd": (lambda t, x: t.linalg.norm(x.reshape(3, 1), 2), [3.0, 4.0, 0.0]),
}  # fmt: skip


def derivatives(t: Any, case: str) -> list[Any]:
    """First derivatives against fixed cotangents, then those of their sum's square."""
    fn, data = CASES[case]
    x = t.tensor(data, dtype=t.float64, requires_grad=True)
    y = fn(t, x)
    cotangent = t.arange(1, y.numel() + 1, dtype=t.float64).reshape(tuple(y.shape))
    found: list[Any] = []
    if not y.requires_grad:
        return found
    (first,) = t.autograd.grad(y, x, cotangent, create_graph=True, materialize_grads=True)
    found.append(np.asarray(first.detach().numpy()))
    if first.requires_grad:
        weights = t.tensor([1.0, -2.0, 3.0], dtype=t.float64)
        try:
            (second,) = t.autograd.grad(first, x, weights, materialize_grads=True)
        except RuntimeError as error:  # PyTorch has no formula
            assert t is torch and "is not implemented" in str(error)
            return found
        found.append(np.asarray(second.numpy(force=True)))
    return found


@pytest.mark.quick(16)
@pytest.mark.parametrize("case", CASES)
def test_derivatives_at_the_border(case: str) -> None:
    want, got = derivatives(torch, case), derivatives(leafax, case)
    if want:
        np.testing.assert_allclose(got[0], want[0], atol=1e-9, err_msg="first order")
    if len(want) == 2 and len(got) == 2:
        # Where PyTorch's second derivative is NaN, ours may be finite: its formula divides by 0.
        known = ~np.isnan(want[1])
        np.testing.assert_allclose(got[1][known], want[1][known], atol=1e-9, err_msg="second order")
    elif len(want) == 2:
        np.testing.assert_allclose(np.nan_to_num(want[1]), 0, err_msg="second order is missing")


# Where a tangent is to be differently from PyTorch's: its NaN, its zero at a tie where its own
# gradient is 1, and a second derivative of `cumprod` at a zero that is half of the true one.
TANGENTS_DIFFER = {
    "tangent": {"clamp tensor", "fmax", "atan2", "max nan", "min nan"},
    "tangent of the gradient": {"hardsigmoid", "huber"},
    "second tangent": {"hardsigmoid", "huber", "cumprod", "atan2"},
}
ALONG = [1.0, -2.0, 3.0]


def _tangent(t: Any, case: str, of_gradient: bool = False) -> Any:
    fn, data = CASES[case]
    forward = t.autograd.forward_ad
    with forward.dual_level():
        x = t.tensor(data, dtype=t.float64, requires_grad=of_gradient)
        x = forward.make_dual(x, t.tensor(ALONG, dtype=t.float64))
        y = fn(t, x)
        if of_gradient:
            weights = t.arange(1, y.numel() + 1, dtype=t.float64).reshape(tuple(y.shape))
            (y,) = t.autograd.grad(y, x, weights, create_graph=True, materialize_grads=True)
        return forward.unpack_dual(y).tangent


def _second_tangent(t: Any, case: str) -> Any:
    fn, data = CASES[case]
    x, along = (t.tensor(v, dtype=t.float64) for v in (data, ALONG))
    return t.func.jvp(lambda x: t.func.jvp(lambda x: fn(t, x), (x,), (along,))[1], (x,), (along,))[
        1
    ]


TANGENTS: dict[str, Any] = {
    "tangent": _tangent,
    "tangent of the gradient": lambda t, case: _tangent(t, case, of_gradient=True),
    "second tangent": _second_tangent,
}


@pytest.mark.quick(70)
@pytest.mark.parametrize("order", TANGENTS)
@pytest.mark.parametrize("case", CASES)
def test_tangents_at_the_border(case: str, order: str) -> None:
    """Forward mode, forward over reverse and forward over forward."""

    def value(t: Any) -> Any:
        made = TANGENTS[order](t, case)
        return None if made is None else np.asarray(made.detach().numpy())

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, of torch.jit
            want = value(torch)
    except (NotImplementedError, RuntimeError):
        assert case in TANGENTS_DIFFER[order], "PyTorch has no such derivative"
        return
    have = value(leafax)
    if want is None or have is None:  # no tangent is one of zeros
        for made in (want, have):
            assert made is None or not np.nan_to_num(made, nan=1.0).any()
        return
    same = np.allclose(have, want, atol=1e-9, equal_nan=True)
    assert same == (case not in TANGENTS_DIFFER[order]), (have, want)


def test_a_power_whose_exponent_changes_has_tangents_of_negative_numbers() -> None:
    """The exponent is a runtime input by then; the logarithm in its derivative is NaN."""
    forward = leafax.autograd.forward_ad
    for n in (2.0, 3.0, 4.0):
        with forward.dual_level():
            x = forward.make_dual(leafax.tensor([-2.0]), leafax.tensor([1.0]))
            assert forward.unpack_dual(x**n).tangent.tolist() == [n * (-2.0) ** (n - 1)]


def test_parts_of_a_number_too_small_for_its_dtype_are_not_nan() -> None:
    """XLA takes such numbers for 0 on CPUs, so they are read from their bits."""
    parts: Any = leafax.frexp(leafax.tensor([-1e-40, 1e38, 6.0]))
    want: Any = torch.frexp(torch.tensor([-1e-40, 1e38, 6.0]))
    np.testing.assert_array_equal(parts.mantissa.numpy(), want.mantissa.numpy())
    np.testing.assert_array_equal(parts.exponent.numpy(), want.exponent.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients_of_what_is_no_number(dtype: str) -> None:
    """Once there is a NaN, running sums stay so; 0 has a sign."""
    nan = math.nan
    cases: list[tuple[Any, list[float]]] = [
        (lambda t, x: t.nn.functional.softshrink(x), [INF, -INF, -0.0, 0.0, 0.3, -0.3, 2.0]),
        (lambda t, x: t.nn.functional.softshrink(x, 0.0), [-0.0, 0.0, 0.3]),
        (lambda t, x: x.sign(), [nan, INF, -INF, -0.0, 0.0, 0.3, -0.3]),
        *((lambda t, x: x.logcumsumexp(0), row)
          for row in ([nan, INF, 1.0], [INF, nan, 1.0], [1.0, INF, nan, INF], [-INF, nan],
                      [1.0, INF, 2.0])),
    ]  # fmt: skip
    for fn, row in cases:
        found = []
        for t in (torch, leafax):
            x = t.tensor(row, dtype=getattr(t, dtype), requires_grad=True)
            y = fn(t, x)
            (y * t.arange(1.0, len(row) + 1)).sum().backward()
            found.append([y.detach().numpy(), (x.grad + 0).numpy()])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(found[1][0]), np.signbit(found[0][0]))
