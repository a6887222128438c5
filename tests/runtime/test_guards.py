"""Outputs that write over inputs give these back after a fault, and cost no copies for it."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.cheap_programs import OPTIMIZED

import leafax
from leafax._core import run_log
from leafax._runtime import recipes
from leafax.functional.lowering.guards import evaluate_guarded

F = leafax.nn.functional


def _update(p: Any, m: Any) -> Any:
    new = m * 0.5 + 1
    return p - new, new, new, m, p.sum()


@pytest.mark.parametrize("bad", [False, True])
def test_results_that_follow_read_the_old_value_too(bad: bool) -> None:
    p, m = jnp.arange(3.0), jnp.ones(3)
    # One result is there twice, and one is an operand itself.

    @jax.jit
    def run(p: Any, m: Any, bad: Any) -> Any:
        return evaluate_guarded(_update, (p, m), {0: p, 1: m, 2: p, 3: p}, bad)

    found = [np.asarray(x).tolist() for x in run(p, m, bad)]
    new = [1.5] * 3
    if bad:
        assert found == [[0, 1, 2], [1, 1, 1], [0, 1, 2], [0, 1, 2], 3]
    else:
        assert found == [[-1.5, -0.5, 0.5], new, new, [1, 1, 1], 3]
    moved = jax.jit(lambda b: evaluate_guarded(_update, (p, m), {1: m}, b)[0])(bad)
    assert moved.tolist() == ([-1, 0, 1] if bad else [-1.5, -0.5, 0.5])  # by the old m


def test_a_guarded_step_copies_no_more_than_one_without_guards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def copies(n: int) -> tuple[int, int]:
        w = [leafax.full((n, n), 0.1 * i, requires_grad=True) for i in range(1, 3)]
        optimizer = leafax.optim.AdamW(w)
        x, y = leafax.ones(4, n), leafax.tensor([1, 2, 3, 4])
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(leafax.tanh(x @ w[0]) @ w[1], y).backward()
            optimizer.step()
            w[0].tolist()
        ran = reversed(run_log.plans)
        plan = next(plan for run, plan in ran if run.reason == "optimizer.step()")
        avals = [e.aval.struct() for e in plan.program.entries if hasattr(e, "aval")]
        text = plan.lowered(avals).compile(OPTIMIZED).as_text()
        return len(plan.guards), len(re.findall(r" copy\(", text))

    guards, with_guards = copies(32)
    monkeypatch.setattr(recipes, "written_over", lambda trace: {})
    none, without = copies(31)
    assert guards == 8 and none == 0
    assert with_guards <= without
