"""Programs that run in pieces: loops and trees of any length, which are not compiled whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import leafax
from leafax._core import run_log
from leafax.functional.execution import pieces
from leafax.functional.execution.policy import CompilePolicy


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All programs run in pieces, which are compiled when they are first met."""
    monkeypatch.setattr(pieces, "PIECE_MS", 0.0)
    monkeypatch.setattr(pieces, "PIECE_WEIGHT_MS", 0.0)
    monkeypatch.setattr(CompilePolicy, "runs_op_by_op", lambda *_: True)
    pieces.forget_pieces()
    yield
    pieces.forget_pieces()


def last_pieces() -> list[Any]:
    """The pieces of the last program that ran."""
    return run_log.plans[-1][1]._op_by_op._parts.pieces  # type: ignore[no-any-return]


def chain(lib: Any, w: Any, turns: int) -> Any:
    x = w
    for _ in range(turns):
        x = (x * w).sin()
        x = x + 0.5 * w
    return x.sum()


def rows(lib: Any, w: Any, turns: int) -> Any:
    table, total = w.reshape(4, 3), 0
    for k in range(turns):
        row = table[lib.tensor([k % 4])]
        total = total + (row * k).softmax(1)[0, k % 3]
    return total


def written(lib: Any, w: Any, turns: int) -> Any:
    x = lib.zeros(turns, dtype=lib.float64)
    for k in range(turns):
        x[k] = w[k % 12] * 2
    return (x * x).sum()


def tree(lib: Any, w: Any, turns: int) -> Any:
    def node(k: int) -> Any:
        if k < 2:
            return w * (k + 1)
        left, right = node(k // 3), node(k - k // 3 - 1)
        return (left * right + w).tanh() - left

    return node(turns).sum()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("loop", [chain, rows, written, tree])
def test_values_and_gradients_are_those_of_torch(loop: Callable[..., Any]) -> None:
    numbers = np.random.default_rng(0).normal(size=12)
    for turns in (23, 31):
        found = []
        for lib in (torch, leafax):
            w = lib.tensor(numbers, dtype=lib.float64, requires_grad=True)
            value = loop(lib, w, turns)
            value.backward()
            found.append((value.item(), w.grad.numpy()))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-9)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-7, atol=1e-12)
    assert "in pieces" in {run.how for run in leafax.explain()}


def test_loops_of_other_lengths_have_the_same_pieces() -> None:
    seen = []
    for turns in (140, 173, 155):
        w = leafax.full((5,), 0.1, dtype=leafax.float64, requires_grad=True)
        value = chain(leafax, w, turns)
        value.backward()
        value.item()
        found = last_pieces()
        assert [p.start for p in found[1:]] == [p.end for p in found[:-1]]
        assert max(p.end - p.start for p in found) >= 12  # some turns together
        seen.append({id(p.piece) for p in found})
    assert all(run.how != "compiled" for run in leafax.explain())
    assert len(seen[1] - seen[0]) <= 3 and len(seen[2] - seen[0] - seen[1]) <= 3


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("turn", [3, 30])
def test_what_a_check_finds_in_a_piece_is_told_with_the_users_line(turn: int) -> None:
    w = leafax.ones(4, 3, requires_grad=True)
    total = leafax.zeros(())
    for k in range(40):
        places = leafax.tensor([9 if k == turn else k % 4])
        total = total + w.index_select(0, places).tanh().sum()
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    with pytest.raises(IndexError, match="out of range") as raised:
        total.item()
    assert f"recorded at {__file__}:{line}" in raised.value.__notes__


def test_numbers_that_one_line_changes_often_are_inputs() -> None:
    w = leafax.full((100,), 0.5, requires_grad=True)
    total = leafax.zeros(())
    for k in range(60):
        total = total + w[k] * (k + 0.25)
    assert total.item() == sum(0.5 * (k + 0.25) for k in range(60))
    calls = {node.call for node in run_log.plans[-1][1].nodes}
    assert len(calls) <= 2 * 16 + 6


@pytest.fixture
def cell() -> Callable[..., Any]:
    def cell(w: jax.Array, h: jax.Array) -> jax.Array:
        for _ in range(2):
            h = jnp.tanh(h @ w) + 0.1 * h
        return h

    return leafax.jax_function(cell)


def train(cell: Callable[..., Any], lengths: list[int]) -> list[str]:
    """Train with a model that is called at each turn of a step; return how each step ran."""
    w = leafax.full((3, 3), 0.2, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.01)
    ran = []
    for length in lengths:
        h = leafax.ones(2, 3)
        for _ in range(length):
            h = cell(w, h)
        optimizer.zero_grad()
        h.square().mean().backward()
        optimizer.step()
        steps = [run.how for run in leafax.explain(clear=True) if run.reason == "optimizer.step()"]
        assert len(steps) == 1
        ran += steps
    return ran


def test_a_model_that_is_called_many_times_is_one_program_a_step(cell: Any) -> None:
    ran = train(cell, [12] * 6)
    assert ran.count("compiled") == 1 and ran[3:] == ["cached"] * 3


def test_lengths_that_change_compile_no_whole_programs(cell: Any) -> None:
    ran = train(cell, [12, 15, 13, 21, 26, 14, 17, 23])
    assert "compiled" not in ran


def test_what_is_kept_depends_on_what_can_be_reached_alone() -> None:
    """Passes that were walked and passes that were remembered keep the same: MAML's inner steps."""
    w = leafax.full((3, 1), 0.5, dtype=leafax.float64, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    x = leafax.arange(12.0, dtype=leafax.float64).view(4, 3) / 12
    saved = []
    for _ in range(5):
        optimizer.zero_grad()
        total = 0
        for _ in range(3):
            fast = w
            for _ in range(2):
                loss = (x @ fast - 1).square().mean()
                (g,) = leafax.autograd.grad(loss, fast, create_graph=True)
                fast = fast - 0.1 * g
            total = total + (x @ fast - 1).square().mean()
        total.backward()
        optimizer.step()
        saved.append([run.saved for run in leafax.explain(clear=True)][-1])
    assert saved[1:] == saved[1:2] * 4
