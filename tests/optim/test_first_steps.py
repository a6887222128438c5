"""A training loop compiles once, in its first step, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
import pytest

import leafax
from leafax import nn, optim
from leafax.optim import lr_scheduler, swa_utils
from leafax.optim._base import hyperparameters

F = nn.functional
_widths = iter(range(21, 400))  # a program of each test's own

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, 0.1),
    "SGD, momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9),
    "SGD, Nesterov": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "SGD, dampened": lambda p: optim.SGD(p, 0.1, momentum=0.9, dampening=0.1),
    "Adam": lambda p: optim.Adam(p),
    "AdamW, amsgrad": lambda p: optim.AdamW(p, amsgrad=True),
    "RMSprop": lambda p: optim.RMSprop(p, momentum=0.9, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p),
    "NAdam": lambda p: optim.NAdam(p),
    "RAdam": lambda p: optim.RAdam(p),
    "ASGD": lambda p: optim.ASGD(p, t0=1),
    "Rprop": lambda p: optim.Rprop(p),
    "Adafactor": lambda p: optim.Adafactor(p),
    "Optax": lambda p: optim.Optax(
        p, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    ),
}


def _model(*layers: Callable[[int], Any]) -> Any:
    width = next(_widths)
    between = [layer(width) for layer in layers]
    return nn.Sequential(nn.Linear(6, width), *between, nn.ReLU(), nn.Linear(width, 3))


def _loss(model: Any, x: Any = None) -> Any:
    x = leafax.from_numpy(np.ones((5, 6), np.float32)) if x is None else x
    return F.cross_entropy(model(x), leafax.from_numpy(np.arange(5) % 3))


def _plain(model: Any, optimizer: Any, after: Callable[[], Any] = lambda: None) -> Any:
    def step() -> None:
        optimizer.zero_grad()
        loss = _loss(model)
        loss.backward()
        optimizer.step()
        after()
        loss.item()

    return step


def _compiles(step: Callable[[], Any], turns: int = 4) -> list[int]:
    """Count XLA's compilations of programs in each turn, and check that each turn is one.

    A step may run op by op when it is first met, and be compiled by the second.
    """
    leafax.explain(clear=True)
    found = []
    for _ in range(turns):
        step()
        report = leafax.explain(clear=True)
        found.append(sum(c.kind.startswith("program") for c in report.compilations))
        assert [run.reason for run in report] == ["optimizer.step()"], report
        assert report.compiles == found[-1]
    return [found[0] + found[1], *found[2:]]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_compiles_in_its_first_step_alone(name: str) -> None:
    model = _model()
    optimizer = OPTIMIZERS[name](model.parameters())
    assert bool(optimizer.state) == (name == "Adagrad")  # as in PyTorch: steps make the others
    assert _compiles(_plain(model, optimizer)) == [1, 0, 0]


def test_gradients_set_to_none_after_the_step_are_those_that_were_not_there() -> None:
    model = _model()
    optimizer = optim.Adam(model.parameters())

    def step() -> None:
        loss = _loss(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    assert _compiles(step) == [1, 0, 0]


@pytest.mark.parametrize("clips", [False, True])
def test_a_scaler_belongs_to_its_step(clips: bool) -> None:
    model = _model()
    optimizer, scaler = (
        optim.SGD(model.parameters(), 0.1, momentum=0.9),
        leafax.amp.GradScaler("cpu"),
    )

    def step() -> None:
        optimizer.zero_grad()
        with leafax.autocast("cpu", dtype=leafax.bfloat16):
            loss = _loss(model)
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        loss.item()

    assert _compiles(step) == [1, 0, 0]


def test_steps_of_two_optimizers_under_one_scaler_are_those_of_pytorch() -> None:
    """Both run at the scaler's update; what is looked at before is what it was."""
    import torch

    def train(lib: Any) -> list[Any]:
        a, b = (lib.ones(3, dtype=lib.float64).requires_grad_() for _ in range(2))
        optimizers = [lib.optim.SGD([a], 0.1), lib.optim.Adam([b], 0.1)]
        scaler = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        seen = []
        for i in range(5):
            for k, (p, optimizer) in enumerate(zip((a, b), optimizers, strict=True)):
                optimizer.zero_grad()
                scaler.scale((p * p).sum() * (np.inf if i == 2 and k == 1 else 1.0)).backward()
                scaler.step(optimizer)
            if i == 3:
                seen.append(a.tolist())
            scaler.update()
            seen += [a.tolist(), b.tolist(), scaler.get_scale()]
        return seen

    ours, theirs = train(leafax), train(torch)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize("multi", [swa_utils.get_ema_multi_avg_fn(0.9), None])
def test_averages_of_the_model_are_part_of_each_step(multi: Any) -> None:
    model = _model()
    optimizer = optim.Adam(model.parameters())
    average = swa_utils.AveragedModel(model, multi_avg_fn=multi)
    step = _plain(model, optimizer, lambda: average.update_parameters(model))
    assert _compiles(step) == [1, 0, 0]


def test_buffers_and_draws_within_the_loop_are_part_of_each_step() -> None:
    model = _model(nn.BatchNorm1d, lambda width: nn.Dropout(0.2))
    optimizer = optim.Adam(model.parameters())
    generator = leafax.Generator().manual_seed(1)

    def step() -> None:
        optimizer.zero_grad()
        loss = _loss(model, leafax.randn(5, 6, generator=generator) + leafax.rand(5, 6))
        loss.backward()
        optimizer.step()
        loss.item()

    assert _compiles(step) == [1, 0, 0]


def test_models_of_flax_with_statistics_and_dropout_compile_once() -> None:
    linen = pytest.importorskip("flax.linen")
    from leafax.adapters.linen import Model

    class Net(linen.Module):  # type: ignore[misc]
        width: int

        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = linen.BatchNorm(use_running_average=False)(linen.Dense(self.width)(x))
            return linen.Dense(3)(linen.Dropout(0.1, deterministic=False)(linen.relu(x)))

    net = Net(next(_widths))
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    model = Model(net, net.init(keys, np.ones((5, 6), np.float32)))
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    assert _compiles(_plain(model, optimizer)) == [1, 0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
        lambda o: lr_scheduler.LambdaLR(o, lambda n: min(1.0, (n + 1) / 3)),
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=10),
    ],
)
def test_schedules_compile_nothing(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperparameters, "_FIRST_NUMBERS", {})  # as in a new process
    model = _model()
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = make(optimizer)
    found = _compiles(_plain(model, optimizer, schedule.step))
    assert found[0] == 1 and sum(found) == 1


def test_what_was_made_before_the_loop_is_no_part_of_the_first_step() -> None:
    """Parameters and data before the optimizer; a large mask, which comes from no input, after."""
    width = next(_widths)
    data = leafax.randn(5, 6).mul(2).add(1)
    first = leafax.randn(6, width).div(3).requires_grad_()
    last = leafax.randn(width, 3, requires_grad=True)
    optimizer = optim.AdamW([first, last])
    mask = leafax.tril(leafax.ones(512, 512))

    def step() -> None:
        loss = _loss(lambda x: ((x * mask[:5, :6]) @ first).tanh() @ last, data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    leafax.explain(clear=True)
    step()
    assert leafax.explain(clear=True).compiles == 1
    assert _compiles(step) == [0, 0, 0]
    assert mask.sum().item() == 512 * 513 / 2


def test_a_mask_that_each_turn_makes_is_computed_once() -> None:
    model = _model()
    optimizer = optim.Adam(model.parameters())
    masks = []

    def step() -> None:
        mask = leafax.tril(leafax.ones(511, 511))
        loss = _loss(model, leafax.ones(5, 6) * mask[5:10, :6])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        masks.append(mask)
        loss.item()

    assert _compiles(step) == [1, 0, 0]
    masks[0].zero_()  # the memory is each tensor's own
    assert [m.sum().item() for m in masks] == [0.0] + [511 * 512 / 2] * 3
