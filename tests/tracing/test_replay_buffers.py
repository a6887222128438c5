"""Batches that are gathered from a replay buffer: what was drawn makes no other program."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


def _learn(lib: Any, see: Any, steps: int, after: Any = None) -> None:
    """Q-learning as it is written: states are views, actions are or are not."""
    choose, numbers = random.Random(0), np.random.default_rng(0)
    w = lib.from_numpy(numbers.normal(size=(3, 2))).requires_grad_()
    optimizer = lib.optim.SGD([w], lr=0.01)
    buffer: Any = deque(maxlen=30)
    state = lib.tensor(numbers.normal(size=3)).unsqueeze(0)
    for step in range(steps):
        with lib.no_grad():
            drawn = lib.tensor([[choose.randrange(2)]])
            action = (state @ w).max(1).indices.view(1, 1) if choose.random() < 0.5 else drawn
        reward = lib.tensor([float(action.item())], dtype=lib.float64)
        then = lib.tensor(numbers.normal(size=3)).unsqueeze(0)
        buffer.append((state, action, then, reward))
        state = then
        if step < 12:
            continue
        parts = [lib.cat(part) for part in zip(*choose.sample(list(buffer), 6), strict=True)]
        guess = (parts[0] @ w).gather(1, parts[1])
        with lib.no_grad():
            target = (parts[2] @ w).max(1).values * 0.9 + parts[3]
        loss = (guess - target.unsqueeze(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        see(loss, w)
        if after is not None:
            after()


def test_views_that_were_sampled() -> None:
    same(lambda lib, see: _learn(lib, see, 20))


def test_views_that_were_sampled_are_one_program() -> None:
    compiles: list[int] = []
    _learn(
        leafax, lambda *seen: None, 60,
        lambda: compiles.append(leafax.explain(clear=True).compiles),
    )  # fmt: skip
    assert sum(compiles[24:]) <= 3


def test_what_is_gathered_is_read_when_it_is_gathered() -> None:
    def program(lib: Any, see: Any) -> None:
        base = lib.arange(12.0, dtype=lib.float64).view(3, 4)
        rows = [base[0], base[2], base[:, 1], base.t()[3], lib.ones(4, dtype=lib.float64)]
        see(lib.cat(rows))
        see(base)
        base.mul_(2)
        gathered = lib.cat([rows[1], rows[0], rows[4], rows[1]])
        base.add_(1)
        rows[0].zero_()
        see(gathered, lib.cat([rows[0], rows[4], rows[2], rows[3]]))
        rows[1].mul_(3)
        see(base, lib.stack([rows[1], rows[4], rows[0]]), lib.hstack([rows[1], rows[4]]))
        fresh = base[1]
        old = [lib.ones(4, dtype=lib.float64) for _ in range(4)]
        see(lib.stack([*old, fresh, rows[1]]))
        fresh.add_(1)
        see(fresh, base, lib.stack([*old, fresh, base[1], rows[1]]))
        leaf = lib.ones(4, dtype=lib.float64, requires_grad=True)
        lib.cat([rows[0], leaf[:2], *old, rows[1] * leaf]).sum().backward()
        see.gradients(leaf.grad)
        see([(x._version, x._is_view()) for x in rows])

    same(program)


@pytest.mark.usefixtures("all_recorded")
def test_a_loop_that_fills_a_tensor_is_one_node_a_write_and_compiles_once() -> None:
    for turn in range(6):
        x, table = leafax.zeros(20), leafax.zeros(4, 5, dtype=leafax.int64)
        for k in range(20):
            x[k] = k * 0.5 + turn
            table[k // 5, k % 5] = k + turn
        x[-1], x[3] = 7, leafax.tensor(9.0)
        leafax.explain(clear=True)
        expected = [k * 0.5 + turn for k in range(19)]
        expected[3] = 9.0
        assert (x.tolist(), x._version) == ([*expected, 7.0], 22)
        assert table.flatten().tolist() == [k + turn for k in range(20)]
    report = list(leafax.explain())
    assert report[0].how == "cached" and not any(run.how == "compiled" for run in report)
    assert report[0].nodes < 50


def test_a_plain_write_is_seen_where_the_tensor_was_saved() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        w, x = t.ones(3, requires_grad=True), t.ones(3)
        y = (w * x).sum()
        x[1] = 5.0
        log.attempt(y.backward)
        z = (w * x).sum()
        log(x._version, z)
        x[0] = t.tensor(2.0)
        view = x[1:]
        x[2] = 3.5
        log(view, x, x._version, view._version)
        for index, value in ((3, 1.0), (-4, 1.0), ((0, 0), 1.0), (0, t.ones(2)), (0, 1j)):
            log.attempt(x.__setitem__, index, value)
        m = t.zeros(2, 3, dtype=t.int32)
        m[1] = t.tensor([1, 2, 3], dtype=t.int32)
        m[0] = t.tensor([[7, 8, 9]])
        m[0, -1], m[1, 0] = 2.9, True
        log(m, m._version)
