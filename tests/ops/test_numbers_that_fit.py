"""Python numbers that change from call to call, and so become inputs of the program: what PyTorch
says of those that a dtype cannot hold or an op cannot take is said of each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from helpers.sameness import Log, same

CALLS = {
    "fill": lambda t, x, n: x.clone().fill_(n),
    "full": lambda t, x, n: t.full((2,), n, dtype=x.dtype),
    "masked_fill": lambda t, x, n: x.masked_fill(x > 1, n),
    "index_fill": lambda t, x, n: x.index_fill(0, t.tensor([1]), n),
    "scatter": lambda t, x, n: x.scatter(0, t.tensor([1]), n),
    "fill_diagonal": lambda t, x, n: x.expand(4, 4).clone().fill_diagonal_(n),
    "where": lambda t, x, n: t.where(x > 1, n, x),
    "clamp": lambda t, x, n: x.clamp(1, n),
    "clamp_min": lambda t, x, n: x.clamp_min(n),
    "alpha": lambda t, x, n: t.sub(x, x, alpha=n),
    "addcmul": lambda t, x, n: t.addcmul(x, x, x, value=n),
    "addmv": lambda t, x, n: t.addmv(x, x.expand(4, 4), x, beta=n),
    "addr": lambda t, x, n: t.addr(x.expand(4, 4), x, x, alpha=n),
    "threshold": lambda t, x, n: t.nn.functional.threshold(x, 1, n),
    "pow": lambda t, x, n: x**n,
    "pow_": lambda t, x, n: x.clone().pow_(n),
    "shift": lambda t, x, n: (x << n, x >> n) if x.dtype.itemsize > 1 else 0,
    "remainder": lambda t, x, n: str((x % n).tolist()),
    "floor_divide": lambda t, x, n: str((x // n).tolist()),
    "isin": lambda t, x, n: t.isin(n, x),
    "setitem": lambda t, x, n: x.clone().__setitem__(x > 1, n),
}


def compare(call: Callable[..., Any], kinds: Iterable[str], numbers: Iterable[float]) -> None:
    """Compare a call's results and errors for each number, one after the other, with each dtype."""
    for kind in kinds:

        @same
        def program(t: Any, log: Log, kind: str = kind) -> None:
            x = t.tensor([1, 0, 3, 2]).to(getattr(t, kind))
            for n in numbers:
                log.attempt(call, t, x, n)


@pytest.mark.quick(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_numbers_that_change(name: str) -> None:
    kinds = ("int8", "uint8", "int32", "int64", "float32")
    compare(CALLS[name], kinds, (2, 3, -3, 300, 5, 2**40, 0, 2.5, -0.5, math.inf))


WIDE = {k: call for k, call in CALLS.items() if k not in ("alpha", "isin", "pow", "pow_")} | {
    "mul": lambda t, x, n: (x * n, n - x, x / n, x == n, x > n),
    "rpow": lambda t, x, n: n**x,
    "pow": lambda t, x, n: x**n if x.dtype.itemsize > 1 else 0,
    "bitwise": lambda t, x, n: x & n,
    "add_": lambda t, x, n: x.clone().add_(n),
    "lerp": lambda t, x, n: x.lerp(x, n),
    "full_like": lambda t, x, n: (t.full_like(x, n), x.new_full((2,), n)),
    "scalar_tensor": lambda t, x, n: t.scalar_tensor(n),
    "arange": lambda t, x, n: t.arange(n, n + 2, dtype=x.dtype),
    "softmax": lambda t, x, n: x.softmax(n),
    "roll": lambda t, x, n: x.roll(n),
    "set": lambda t, x, n: x.clone().__setitem__(0, n),
}


@pytest.mark.quick(8)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WIDE)
def test_ints_of_more_than_63_bits(name: str) -> None:
    """They are uint64: a float holds them, an integer wraps, a dim does not take them."""
    kinds = ("bool", "uint8", "int64", "float32", "complex64")
    compare(WIDE[name], kinds, (2**63, 2**64 - 1, 2**64, -(2**63) - 1))


RANGES = {
    "hardtanh": lambda t, x, n: t.nn.functional.hardtanh(x, -1, n),
    "softshrink": lambda t, x, n: t.nn.functional.softshrink(x, n),
    "celu": lambda t, x, n: t.nn.functional.celu(x, n),
    "smooth_l1": lambda t, x, n: t.nn.functional.smooth_l1_loss(x, x + 1, beta=n),
    "huber": lambda t, x, n: t.nn.functional.huber_loss(x, x + 1, delta=n),
    "quantile": lambda t, x, n: t.quantile(x, n),
    "renorm": lambda t, x, n: t.renorm(x.expand(2, 4), 1, 0, n),
    "cosine": lambda t, x, n: t.nn.functional.cosine_similarity(x, x, 0, n),
    "integral": lambda t, x, n: t.trapezoid(x, dx=n),
    "beta": lambda t, x, n: t.addmv(x * math.nan, x.expand(4, 4), x, beta=n),
    "baddbmm": lambda t, x, n: t.baddbmm(x * math.inf, x[None, :, None], x[None, None], beta=n),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_numbers_that_change(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([1.0, 0.0, 3.0, 2.0])
        for n in (0.5, 0.75, -2.0, 0.0, 0.25, -0.5, 2, -3, 0, math.nan if name != "celu" else 1):
            if name == "hardtanh" and n != n:
                continue
            log.attempt(RANGES[name], t, x, n)


@pytest.mark.exhaustive
def test_powers_of_integers_wrap() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for kind in (t.int8, t.uint8, t.int16, t.int32, t.int64):
            x = t.tensor([1, 0, 3, 2, 7]).to(kind)
            log(x ** t.tensor([3, 70, 127, 100, 64]).to(kind))
            for n in (63, 64, 100, 127):
                log(x**n, x.clone().pow_(n))
        log(t.tensor([3, 5]) ** t.tensor([300, 2**62 + 1]))


def test_powers_of_a_complex_zero() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        zero = t.zeros(2, dtype=t.complex128)
        for power in (1, 2, 3, 2.5, 300, 1 + 2j, t.tensor([1.0, 2.5]), t.tensor([2 + 1j, 0.5])):
            for made in (zero**power, t.float_power(zero, power)):
                log(t.view_as_real(made), t.view_as_real(made).signbit())


def test_nothing_to_drop() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.arange(4.0, requires_grad=True)
        for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
            fn = getattr(t, name)
            for p, train in ((0.0, True), (0.5, False), (0, False)):
                y = fn((x * 2).view(2, 2), p, train)
                log(y.detach(), y.grad_fn.name())
                z = x.view(2, 2)
                log(fn(z, p, train) is z, fn(z, p=p, train=train) is z)
            for p in (-0.5, 1.5):
                log.attempt(fn, x.view(2, 2), p, False)
                log.attempt(fn, x.view(2, 2), p, True)
        log(t.dropout(t.arange(3), 0.0, True))


LATE: dict[str, Any] = {
    "select": lambda t, x, i: x.select(0, i), "narrow": lambda t, x, i: x.narrow(0, i, 1),
    "index": lambda t, x, i: x[i], "written": lambda t, x, i: x.narrow(0, i, 1).zero_(),
    "scatter": lambda t, x, i: t.select_scatter(x, x[0], 0, i),
    "copy": lambda t, x, i: t.select_copy(x, 0, i),
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
def test_places_out_of_range_are_refused_where_they_are_given(name: str) -> None:
    """Also where the place has changed from call to call: it raised when a value was read."""

    @same
    def program(t: Any, log: Log) -> None:
        x = t.arange(6.0).view(3, 2)
        for i in (0, 1, 2, 0, 3, 5, -3, -4, -7):
            log.attempt(LATE[name], t, x * 1, i)
            log((x + 1).tolist())  # cuts, so that the next number comes at the same place
