"""Limits that cut a growing program: its length, and the memory that only it holds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import leafax
from leafax._dispatch import record
from leafax._tracing import loop_cuts


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)


def limit_bytes(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    for module in (record, loop_cuts):
        monkeypatch.setattr(module, "BUDGET_BYTES", limit)


@pytest.mark.usefixtures("all_recorded")
def test_batches_that_only_the_program_holds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_bytes(monkeypatch, 100_000)
    total = leafax.tensor(0.0)
    for i in range(60):
        total += leafax.from_numpy(np.full(1000, i, "f")).sum()
    assert total.item() == sum(1000.0 * i for i in range(60))
    assert any("bytes" in run.reason for run in leafax.explain())


def test_parameters_that_a_model_holds_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_bytes(monkeypatch, 10_000)
    weights = [leafax.tensor(np.ones(1000, "f"), requires_grad=True) for _ in range(20)]
    optimizer = leafax.optim.SGD(weights, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        sum((w * w).sum() for w in weights).backward()
        optimizer.step()
    assert [run.reason for run in leafax.explain()] == ["optimizer.step()"] * 3


def test_an_evaluation_loop_compiles_no_pile_of_models() -> None:
    def model(x: jax.Array) -> jax.Array:
        return jnp.tanh(x) * 2

    correct = leafax.tensor(0)
    for i in range(40):
        x = leafax.from_numpy(np.full(4, i, "f"))
        correct += (leafax.call_jax(model, x) > 0).sum()
    assert correct.item() == 156
    assert {run.how for run in leafax.explain()} <= {"op by op", "in pieces"}


def test_a_loop_that_draws_is_cut_into_few_draws() -> None:
    """A program of 64 draws compiles for as long as one of 2000 other ops."""
    total = leafax.tensor(0.0)
    for _ in range(800):
        total = total + leafax.rand(2).sum()
    assert 0 < total.item() < 1600
    runs = list(leafax.explain())
    assert max(run.nodes for run in runs if run.how != "op by op") <= 40
    assert leafax.explain().compiles <= 1
