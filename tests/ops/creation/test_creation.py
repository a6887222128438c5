"""Factories against live PyTorch; random ones against their distributions and PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from helpers.ops_agree import agree, firing, to_jax

from leafax.functional.ops.random import creation, draws
from leafax.functional.program.op import TABLE

assert creation and draws  # imported to enter their ops into the table

INT, F16, F64, BOOL = torch.int64, torch.float16, torch.float64, torch.bool


def made(name: str, args: Any, dtype: torch.dtype | None) -> None:
    def theirs(*given: Any) -> torch.Tensor:
        given = given[:-1]
        if name == "full":
            return torch.full(*given, dtype=dtype)
        if name == "eye" and given[1:] == (None,):
            given = given[:1]
        if name in ("tril_indices", "triu_indices"):
            return getattr(torch, name)(*given, dtype=dtype or INT)
        return getattr(torch, name)(*given, dtype=dtype)

    shown = None if dtype is None else np.dtype(str(dtype).removeprefix("torch."))
    agree(name, *args, shown, theirs=theirs)


CALLS: list[tuple[Any, ...]] = [
    ("zeros", ((2, 3),)), ("zeros", ((2,),), INT), ("zeros", ((2, -1),)), ("ones", ((),), BOOL),
    ("full", ((2,), 3)), ("full", ((2,), 3.5)), ("full", ((), True)), ("full", ((2,), 3j)),
    ("full", ((2,), 3.7), INT), ("full", ((2,), 1), F16), ("arange", (0, 5, 1)),
    ("arange", (0, 5.0, 1)), ("arange", (0, 1, 0.1)), ("arange", (0, 1, 0.1), F64),
    ("arange", (5, 0, -2)), ("arange", (5, 0, 1)), ("arange", (0, 5, 0)), ("arange", (0, -5, 1)),
    ("arange", (0, float("inf"), 1)), ("arange", (0, float("nan"), 1)),
    ("arange", (1, 5, 2), torch.float32), ("arange", (0.5, 5, 2), INT), ("arange", (0, 3, 1), BOOL),
    ("arange", (0, 3, 1), torch.complex64), ("arange", (0, 3, 1), torch.complex128),
    ("arange", (0, 5, 0.5), INT), ("arange", (0, 7, 3), torch.int32),
    ("arange", (1, 2.5, 0.3), F16),
    ("arange", (1, 10, 0.3), torch.int8), ("arange", (1.9, 1.2, 1), INT),
    ("arange", (300, 302, 1), torch.uint8), ("arange", (3, 1, -0.5), torch.int32),
    ("arange", (0.5, 5.2, 2), torch.int32), ("arange", (3, 3, 1)), ("arange", (-2, 100, 7)),
    ("linspace", (0, 1, 5)), ("linspace", (0, 1, -1)), ("linspace", (0, 1, 0)),
    ("linspace", (3, 1, 1)), ("linspace", (0, 10, 5), INT), ("linspace", (-3, 10, 6), INT),
    ("linspace", (0, 1j, 5)), ("linspace", (0, 1, 7), F64), ("linspace", (1, 0, 10)),
    ("linspace", (0.1, 0.9, 1001)), ("eye", (3, None)), ("eye", (3, 2)), ("eye", (2, 4), INT),
    ("eye", (3, -2)), ("eye", (-3, None)), ("tril_indices", (3, 4, 0)),
    ("tril_indices", (3, 4, -1)),
    ("tril_indices", (-3, 4, 0)), ("triu_indices", (3, 4, 1)), ("triu_indices", (4, 3, -1)),
    ("triu_indices", (3, -4, 0)), ("triu_indices", (3, 3, 0), torch.int32),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_factory(call: tuple[Any, ...]) -> None:
    name, args, *dtype = call
    made(name, args, dtype[0] if dtype else None)


@pytest.mark.parametrize("args", [(0, 1, 5), (-2, 2, 9), (0, 1, -5)])
def test_logspace(args: Any) -> None:
    agree("logspace", *args, tol=1e-5)
    agree("logspace", *args, 2.0, tol=1e-5)


def draw(name: str, *args: Any, **kwargs: Any) -> Any:
    """Check and run a random op as the recorder does: shapes first, then data."""
    entry = TABLE[name]
    with jax.enable_x64(True):
        key = jax.random.key(7)
        full = [to_jax(a) for a in args]
        named = {k: to_jax(v) for k, v in kwargs.items()}
        jax.eval_shape(lambda k: entry.fn(k, *full, **named), key)
        fault = firing(entry, [key, *full], named)
        if fault is not None:
            raise fault
        return entry.fn(key, *full, **named)


HALF, ONES, Z = torch.full((4,), 0.5), torch.ones(3), torch.zeros(3)
ERRORS: list[tuple[tuple[Any, ...], dict[str, Any], Callable[[], Any]]] = [
    (("rand", (2,), INT), {}, lambda: torch.rand(2, dtype=INT)),
    (("randn", (2,), INT), {}, lambda: torch.randn(2, dtype=INT)),
    (("randint", 5, 5, (2,)), {}, lambda: torch.randint(5, 5, (2,))),
    (
        ("randint", 0, 500, (2,), torch.uint8), {},
        lambda: torch.randint(0, 500, (2,), dtype=torch.uint8),
    ),
    (("randperm", -5), {}, lambda: torch.randperm(-5)),
    (("bernoulli", HALF * 3), {}, lambda: torch.bernoulli(HALF * 3)),
    (("bernoulli", HALF.long()), {}, lambda: torch.bernoulli(HALF.long())),
    (("bernoulli", HALF, 2), {}, lambda: torch.bernoulli(HALF, 2)),
    (("multinomial", ONES, 4), {}, lambda: torch.multinomial(ONES, 4)),
    (("multinomial", Z, 1), {}, lambda: torch.multinomial(Z, 1)),
    (("multinomial", -ONES, 1), {}, lambda: torch.multinomial(-ONES, 1)),
    (("multinomial", ONES, 0), {}, lambda: torch.multinomial(ONES, 0)),
    (("multinomial", ONES.long(), 1), {}, lambda: torch.multinomial(ONES.long(), 1)),
    (("multinomial", Z[None, None], 1), {}, lambda: torch.multinomial(Z[None, None], 1)),
    (("normal", 0.0, -1.0, (2,)), {}, lambda: torch.normal(0.0, -1.0, (2,))),
    (("normal", Z, -ONES), {}, lambda: torch.normal(Z, -ONES)),
    (("uniform", Z, 1, 0), {}, lambda: torch.zeros(3).uniform_(1, 0)),
    (("uniform", Z.long()), {}, lambda: torch.zeros(3).long().uniform_()),
    (("fill.normal", Z, 0, -1), {}, lambda: torch.zeros(3).normal_(0, -1)),
    (("fill.normal", Z.long()), {}, lambda: torch.zeros(3).long().normal_()),
    (("fill.bernoulli", Z, 5), {}, lambda: torch.zeros(3).bernoulli_(5)),
    (("random", Z, 5, 5), {}, lambda: torch.zeros(3).random_(5, 5)),
    (("exponential", Z, 0), {}, lambda: torch.zeros(3).exponential_(0)),
    (("exponential", Z.long()), {}, lambda: torch.zeros(3).long().exponential_()),
    (("geometric", Z, 2), {}, lambda: torch.zeros(3).geometric_(2)),
    (("cauchy", Z, 0, -1), {}, lambda: torch.zeros(3).cauchy_(0, -1)),
    (("log_normal", Z, 0, -1), {}, lambda: torch.zeros(3).log_normal_(0, -1)),
]  # fmt: skip


def _id(x: Any) -> str | None:
    return None if callable(x) else str(x)[:40]  # equal in every process


@pytest.mark.parametrize("call, named, theirs", ERRORS, ids=_id)
def test_errors(call: tuple[Any, ...], named: dict[str, Any], theirs: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as expected:
        theirs()
    with pytest.raises(Exception) as got:
        draw(*call, **named)
    assert (type(got.value), str(got.value)) == (type(expected.value), str(expected.value))


N = 20000
BIG = torch.zeros(N)
DRAWS: list[tuple[tuple[Any, ...], str, float, float]] = [
    (("rand", (N,)), "float32", 0.5, 1 / 12), (("randn", (N,)), "float32", 0, 1),
    (("randn", (N,), F64), "float64", 0, 1), (("randint", 0, 11, (N,)), "int64", 5, 10),
    (("randint", 0, 11, (N,), F16), "float16", 5, 10), (("randperm", 3), "int64", 1, 2 / 3),
    (("bernoulli", BIG + 0.3), "float32", 0.3, 0.21),
    (("bernoulli", BIG, 0.7), "float32", 0.7, 0.21),
    (("multinomial", torch.tensor([1.0, 0, 3]), N, True), "int64", 1.5, 0.75),
    (("normal", 2.0, 3.0, (N,)), "float32", 2, 9), (("normal", BIG + 1, BIG + 2), "float32", 1, 4),
    (("uniform", BIG, -1, 3), "float32", 1, 16 / 12), (("fill.normal", BIG, 1, 2), "float32", 1, 4),
    (("fill.bernoulli", BIG.long(), 0.3), "int64", 0.3, 0.21),
    (("random", BIG, 0, 11), "float32", 5, 10), (("random", BIG.bool()), "bool", 0.5, 0.25),
    (("exponential", BIG, 2), "float32", 0.5, 0.25), (("geometric", BIG, 0.5), "float32", 2, 2),
    (("log_normal", BIG, 0, 0.1), "float32", 1.005, 0.01015),
]  # fmt: skip


@pytest.mark.parametrize("call, dtype, mean, variance", DRAWS, ids=lambda x: str(x)[:40])
def test_distribution(call: tuple[Any, ...], dtype: str, mean: float, variance: float) -> None:
    drawn = draw(*call)
    assert str(drawn.dtype) == dtype and not drawn.weak_type
    values = np.asarray(drawn, np.float64)
    assert abs(values.mean() - mean) < 6 * np.sqrt(variance / values.size) + 1e-9
    assert abs(values.var() - variance) < 0.1 * variance + 1e-9


def test_without_replacement() -> None:
    drawn = np.asarray(draw("multinomial", torch.tensor([[1.0, 2, 3, 4]] * 50), 4))
    assert (np.sort(drawn, 1) == np.arange(4)).all()
    assert (np.asarray(draw("multinomial", torch.tensor([0.0, 1, 0]), 1)) == 1).all()


def test_defaults_of_random_fill_what_the_dtype_holds() -> None:
    assert np.asarray(draw("random", torch.zeros(1000, dtype=torch.uint8))).max() > 200
    assert np.asarray(draw("random", torch.zeros(1000))).max() > 2**23
    assert jnp.max(draw("random", torch.zeros(1000, dtype=F16))) <= 2**11
