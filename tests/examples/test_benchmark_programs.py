"""The programs of `benchmarks/` compute the same training, so that their times compare."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import leafax

pytest.importorskip("optax")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
hand = importlib.import_module("handwritten")


def _losses(program: Any, steps: int = 5) -> list[float]:
    step, state, batch = program
    losses = []
    for i in range(steps):
        state, loss = step(state, batch(i))
        losses.append(float(loss))
    return losses


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", ["make_mlp", "make_gpt"])
def test_jit_and_torch_have_the_same_losses(make: str) -> None:
    pytest.importorskip("torch")
    eager = importlib.import_module("torch_eager")
    theirs = _losses(getattr(eager, make)())
    for out_in in (True, False):
        ours = _losses(getattr(hand, make)(out_in))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)
    assert theirs[-1] < theirs[0]


@pytest.mark.exhaustive
def test_the_lstm_has_the_same_losses_by_hand_and_in_both_libraries() -> None:
    torch = pytest.importorskip("torch")
    mix = importlib.import_module("mix")
    chosen = mix.MIXES["lstm"]
    with mix.sized(chosen):
        runs = [mix.by_hand(chosen), *[mix.of_library(lib, chosen) for lib in (leafax, torch)]]
        losses = [[float(run(i).item()) for i in range(4)] for run in runs]
    np.testing.assert_allclose(losses[:2], losses[1:], rtol=1e-4)


@pytest.mark.parametrize("make", ["make_mlp", "make_gpt"])
def test_the_batches_of_a_step_are_always_the_same(make: str) -> None:
    batch = getattr(hand, make)().batch
    for again, first in zip(batch(3), batch(3), strict=True):
        np.testing.assert_array_equal(again, first)


@pytest.mark.exhaustive
def test_fine_tuning_the_head_leaves_the_backbone_out_of_everything() -> None:
    pytest.importorskip("flax")
    try:
        step, state, batch = hand.make_finetune_head()
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    images, labels = batch(0)
    small = images[:4, :32, :32], labels[:4]
    assert len(jax.tree.leaves(state.opt_state)) == 2 * 2 + 1  # two moments of two, and a count
    first = np.asarray(state.params["kernel"])
    state, before = step(state, small)
    state, between = step(state, small)
    compiled = step.func._cache_size()
    state, after = step(state, small)
    assert step.func._cache_size() == compiled
    assert after < between < before
    # Adam moves a weight whose gradient keeps its sign by the learning rate each step.
    moved = np.abs(np.asarray(state.params["kernel"]) - first)
    assert moved.max() == pytest.approx(3 * hand.FINETUNE_RATE, rel=0.01)


@pytest.mark.parametrize("train_norm", [True, False])
def test_training_everything_updates_every_parameter_and_its_statistics(train_norm: bool) -> None:
    pytest.importorskip("flax")
    try:
        step, state, batch = hand.make_finetune_all(train_norm)
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    after, _ = jax.eval_shape(step, state, batch(0))
    shapes = jax.tree.map(np.shape, (state, after))
    assert shapes[0] == shapes[1]
    assert len(jax.tree.leaves(state.params)) == 3 * 49 + 2


def test_all_benchmarks_find_what_they_import() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + "\n".join(
        f"import {path.stem}" for path in sorted(folder.glob("*.py"))
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
