"""Values and gradients where they are special: zeros of both signs, infinities, NaN, far tails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax

POINTS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, math.inf, -math.inf, math.nan, 1e-300, 1e300, 100.0,
    -100.0, 1000.0, -1000.0, 3.0, 6.0, -3.0,
)  # fmt: skip
PAIRS = list(itertools.product((0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan),
                               repeat=2))  # fmt: skip

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 "
    "expm1 floor frac lgamma log log10 log1p log2 logit nan_to_num neg reciprocal round rsqrt "
    "sigmoid sign sin sinc sinh sqrt square tan tanh trunc relu special.entr special.i0e "
    "special.i1 special.i1e special.log_ndtr special.ndtr special.ndtri nn.functional.relu6 "
    "nn.functional.elu nn.functional.selu nn.functional.celu nn.functional.silu "
    "nn.functional.mish nn.functional.gelu nn.functional.softplus nn.functional.hardtanh "
    "nn.functional.hardsigmoid nn.functional.hardswish nn.functional.leaky_relu "
    "nn.functional.logsigmoid nn.functional.softsign nn.functional.tanhshrink "
    "nn.functional.softshrink nn.functional.hardshrink"
).split()
BINARY = (
    "add sub mul div pow atan2 fmod remainder hypot logaddexp logaddexp2 maximum minimum fmax fmin "
    "xlogy copysign float_power ldexp special.xlog1py"
).split()
TOGETHER: dict[str, Callable[..., Any]] = {
    "clamp": lambda t, x, y: t.clamp(x, -1.0, 1.0) + y,
    "clamp from": lambda t, x, y: t.clamp(x, min=y),
    "clamp to": lambda t, x, y: t.clamp(x, y, t.ones_like(y)),
    "clamp of": lambda t, x, y: t.clamp(t.ones_like(x), x, y),
    "lerp": lambda t, x, y: t.lerp(x, y, 0.3),
    "addcmul": lambda t, x, y: t.addcmul(x, x, y),
    "addcdiv": lambda t, x, y: t.addcdiv(x, x, y),
    "where": lambda t, x, y: t.where(x > 0, x / y, y),
} | {
    name: lambda t, x, y, name=name: getattr(t.nn.functional, name)(x, y, reduction="none")
    for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div",
                 "binary_cross_entropy_with_logits")
}  # fmt: skip


def _named(lib: Any, name: str) -> Any:
    for part in name.split("."):
        lib = getattr(lib, part)
    return lib


def _agree(fn: Callable[..., Any], *points: Any, dtype: str = "float64") -> None:
    """`fn(lib, *tensors)` and its gradients, at every point, under both libraries."""
    found: list[list[np.ndarray]] = []
    for lib in (leafax, torch):
        xs = [lib.tensor(p, dtype=getattr(lib, dtype), requires_grad=True) for p in points]
        y = fn(lib, *xs)
        y.backward(lib.ones_like(y) * (1 + 2j) if y.is_complex() else lib.ones_like(y))
        zeros = np.zeros(len(points[0]))
        grads = [zeros if x.grad is None else x.grad.numpy() for x in xs]
        found.append([y.detach().numpy(), *grads])
    for k, (ours, theirs) in enumerate(zip(*found, strict=True)):
        what = "value" if k == 0 else f"gradient {k - 1}"
        np.testing.assert_allclose(ours, theirs, 1e-7, 1e-15, equal_nan=True, err_msg=what)


@pytest.mark.quick(17)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name: str) -> None:
    # At the poles of digamma rounding decides.
    points = [p for p in POINTS if name != "digamma" or not p < 0]
    _agree(lambda lib, x: _named(lib, name)(x), points)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name: str) -> None:
    _agree(lambda lib, x, y: _named(lib, name)(x, y), *zip(*PAIRS, strict=True))


@pytest.mark.parametrize("name", TOGETHER)
def test_compositions(name: str) -> None:
    _agree(TOGETHER[name], *zip(*PAIRS, strict=True))


# Both sides of every branch cut: on it the sign of zero tells the side.
SIDES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0)
PLANE = [complex(a, b) for a in SIDES for b in SIDES]
COMPLEX: dict[str, Callable[..., Any]] = {
    name: lambda t, x, name=name: _named(t, name)(x)
    for name in (
        "abs acos acosh angle asin asinh atan cos cosh exp log1p sgn sigmoid sin sinh square tan "
        "tanh"
    ).split()
} | {
    "sqrt": lambda t, x: t.where(x == 0, x, t.where(x == 0, 1, x).sqrt()),
    "log": lambda t, x: t.where(x == 0, 1, x).log(),
    "pow 1": lambda t, x: x**1.0, "pow 2.5": lambda t, x: x**2.5, "pow 1j": lambda t, x: x**1j,
    "power of 0.5": lambda t, x: 0.5**x, "power of 0": lambda t, x: 0.0**x,
    "power of itself": lambda t, x: x**x.detach().flip(0),
    "exponent": lambda t, x: x.detach().flip(0) ** x,
}  # fmt: skip


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_on_their_branch_cuts(name: str) -> None:
    _agree(COMPLEX[name], PLANE, dtype="complex128")


REPEATED: dict[str, Callable[..., Any]] = {
    "std_mean of one": lambda t, x: t.std_mean(x[0, :1])[1],
    "var_mean of one": lambda t, x: t.var_mean(x[0, :1])[1],
    "svd": lambda t, x: t.linalg.svd(x)[1].sum(),
    "thin svd": lambda t, x: t.linalg.svd(x[:2], full_matrices=False).S.sum(),
    "eigh": lambda t, x: (t.linalg.eigh(x)[0] * t.arange(3)).sum(),
    "eig": lambda t, x: t.linalg.eig(x)[0].real.sum(),
    "renorm": lambda t, x: t.renorm(x - t.eye(3), 2, 0, 1.0).sum(),
}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", REPEATED)
def test_what_got_no_gradient_makes_no_nan(name: str) -> None:
    """Of the other outputs the derivative is not finite here: repeated values, a single number."""
    grads = []
    for lib in (leafax, torch):
        x = lib.eye(3, dtype=lib.float64, requires_grad=True)
        REPEATED[name](lib, x).backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], 1e-9, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_two_are_exact(dtype: str) -> None:
    """So that `floor(log2(x))` is the exponent."""
    powers = np.arange(-120, 121)
    exact = 2.0**powers
    x = leafax.tensor(exact, dtype=getattr(leafax, dtype))
    n = leafax.tensor(powers)
    np.testing.assert_array_equal(leafax.log2(x).numpy(), powers)
    np.testing.assert_array_equal(leafax.exp2(n.to(x.dtype)).numpy(), exact)
    np.testing.assert_array_equal(leafax.ldexp(leafax.ones_like(x), n).numpy(), exact)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
def test_distances_of_nan_and_infinities(p: float) -> None:
    """They were those of the other numbers."""
    rows = ([math.nan, 1.0, 2.0], [math.inf, 1.0, 2.0], [0.0, 0.0, 0.0], [-math.inf, 0.0, 1.0])
    made = []
    for lib in (torch, leafax):
        x = lib.tensor(rows, dtype=lib.float64)
        F = lib.nn.functional
        each = lib.stack([lib.dist(a, b, p) for a in x for b in x])
        found = (each, lib.cdist(x, x, p), F.pdist(x, p), F.pairwise_distance(x, x.flip(0), p))
        made.append([t.numpy() for t in found])
    for theirs, ours in zip(*made, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
