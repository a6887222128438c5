"""Result dtypes of every pair of dtypes, with and without dims, and of Python numbers.

Nothing is computed: what an op returns is known when it is recorded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import leafax

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
NUMBERS = [True, 2, 1.5, 1j]
OPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "rsub": lambda t, a, b: t.rsub(a, b),
    "mul": lambda t, a, b: a * b,
    "div": lambda t, a, b: a / b,
    "floor_divide": lambda t, a, b: a // b,
    "pow": lambda t, a, b: a**b,
    "eq": lambda t, a, b: a == b,
    "and": lambda t, a, b: a & b,
    "where": lambda t, a, b: t.where(t.ones(2, dtype=t.bool), a, b),
    "add_": lambda t, a, b: a.clone().add_(b),
    "div_": lambda t, a, b: a.clone().div_(b),
    "copy_": lambda t, a, b: a.clone().copy_(b),
    "result_type": lambda t, a, b: t.result_type(a, b),
}


def operands(lib: Any) -> list[Any]:
    kinds = [getattr(lib, d) for d in DTYPES]
    return [*[lib.ones(2, dtype=d) for d in kinds], *[lib.ones((), dtype=d) for d in kinds]]


def outcome(lib: Any, op: Callable[[Any, Any, Any], Any], a: Any, b: Any) -> str:
    try:
        made = op(lib, a, b)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return str(made.dtype if isinstance(made, lib.Tensor) else made)


@pytest.mark.quick(2)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("name", OPS)
def test_every_pair(name: str) -> None:
    both = list(zip(operands(torch), operands(leafax), strict=True))
    wrong = []
    for a, ours in both:
        for b, other in [*both, *[(x, x) for x in NUMBERS]]:
            expected = outcome(torch, OPS[name], a, b)
            if "complex32" in expected or "ComplexHalf" in expected:
                continue  # JAX has no such dtype
            found = outcome(leafax, OPS[name], ours, other)
            if found != expected:
                wrong.append((a.dtype, a.dim(), getattr(b, "dtype", b), found, expected))
    assert not wrong


CASES: list[Callable[[Any], Any]] = [
    lambda t: t.ones(2) - True,
    lambda t: True - t.ones(2),
    lambda t: t.ones(2, dtype=t.bool) - True,
    lambda t: t.ones(2).sub_(False),
    lambda t: t.ones(2, dtype=t.bool).clamp(min=t.ones(2, dtype=t.bool)),
    lambda t: t.ones(2, dtype=t.bool).clamp(min=True),
    lambda t: t.ones(2).clamp(min=t.ones(2, dtype=t.complex64)),
    lambda t: t.ones(2).clamp(max=t.ones(2, dtype=t.complex64)),
    lambda t: t.outer(t.ones(2), 3),
    lambda t: t.outer(2, t.ones(2)),
    lambda t: t.dist(t.ones(2, dtype=t.bool), t.ones(2)),
    lambda t: t.nextafter(t.ones(2, dtype=t.bool), t.ones(2, dtype=t.bool)),
    lambda t: t.nextafter(t.ones(2), t.ones(2, dtype=t.complex64)),
]


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused(case: Callable[[Any], Any]) -> None:
    found = [outcome(lib, lambda t, a, b: case(t), None, None) for lib in (leafax, torch)]
    assert found[0] == found[1]


NUMBERS_OF: list[Callable[[Any], Any]] = [
    lambda t: float(t.tensor(1 + 0j)),
    lambda t: float(t.tensor(1 + 1j)),
    lambda t: int(t.tensor(2 + 0j)),
    lambda t: int(t.tensor(1 + 2j)),
    lambda t: complex(t.tensor(1.5)),
    lambda t: int(t.tensor(float("nan"))),
    lambda t: float(t.tensor([1.0, 2.0])),
]


@pytest.mark.parametrize("case", NUMBERS_OF)
def test_tensors_as_numbers(case: Callable[[Any], Any]) -> None:
    found = [outcome(lib, lambda t, a, b: case(t), None, None) for lib in (leafax, torch)]
    assert found[0] == found[1]


def test_the_default_dtype_may_change_between_uses_of_an_op() -> None:
    """Programs recorded under one default dtype are not reused under another."""
    ops: tuple[Callable[[Any, Any], Any], ...] = (
        lambda t, i: i * 1.5, lambda t, i: 1.5 - i, lambda t, i: i / 2, lambda t, i: i // 1.5,
        lambda t, i: t.remainder(i, -1.5), lambda t, i: i.sin(), lambda t, i: i * 1j,
        lambda t, i: t.where(i > 1, 1.0, 0.0), lambda t, i: i.clamp(0.5, 2.5),
        lambda t, i: t.trapezoid(i), lambda t, i: t.gradient(i)[0], lambda t, i: t.ldexp(i, i),
        lambda t, i: t.cumulative_trapezoid(i, dx=0.5), lambda t, i: t.fft.fftfreq(3),
        lambda t, i: t.nn.functional.margin_ranking_loss(i, i, i, margin=0.5),
        lambda t, i: t.normal(0.0, 1.0, (2,)), lambda t, i: t.full((2,), 1.5), lambda t, i: i + 1,
    )  # fmt: skip
    said: list[list[Any]] = []
    for t in (torch, leafax):
        seen: list[Any] = []
        try:
            for kind in ("float32", "float64", "float32"):
                t.set_default_dtype(getattr(t, kind))
                i = t.tensor([1, 2, 3])
                seen += [str(op(t, i).dtype).split(".")[-1] for op in ops]
        finally:
            t.set_default_dtype(t.float32)
        said.append(seen)
    assert said[0] == said[1]


def test_the_default_dtype_of_when_it_was_recorded_counts() -> None:
    """Also where the program runs later, or its gradient is taken later."""
    said = []
    for t in (torch, leafax):
        try:
            x = t.tensor([1.0, 2.0], requires_grad=True)
            i = t.tensor([1, 2])
            early, once = x * (i / 3), i / 7
            with t.no_grad():
                t.set_default_dtype(t.float64)
            late = (x * (i / 3)).sum() + early.sum()
            t.set_default_dtype(t.float32)
            late.backward()
            facts = [str(a.dtype).split(".")[-1] for a in (early, once, late, x.grad, i / 3)]
            said.append((facts, x.grad.tolist(), once.tolist(), late.tolist()))
        finally:
            t.set_default_dtype(t.float32)
    assert said[0] == said[1]


@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16"])
def test_floats_that_integers_cannot_hold(source: str) -> None:
    """As PyTorch's processors have it: the lowest bits, and the smallest number for NaN."""
    values = [-3.0, 300.7, -300.7, 1e5, 3e9 + 7, -3e9, 1e20, float("nan"), float("inf"), 1e19]
    for name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"):
        made = []
        for t in (torch, leafax):
            x = t.tensor(values * 4, dtype=getattr(t, source))[: len(values)]
            made.append(x.to(getattr(t, name)).tolist())
        assert made[0] == made[1], name


def test_numbers_beyond_a_half_pass_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in (leafax, torch):
            half = t.tensor(2.5, dtype=t.float16)
            assert (half * 1e10).item() == float("inf") and (half + 1e6).item() == float("inf")
