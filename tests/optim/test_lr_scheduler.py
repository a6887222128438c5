"""Schedulers against torch.optim.lr_scheduler: rates, momenta, states, warnings and errors."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optax
import pytest
import torch

import leafax

Make = Callable[[Any, Any], Any]

CASES: dict[str, Make] = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 + 0.01 * e),
    "step": lambda s, o: s.StepLR(o, 3, gamma=0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 2, 7], gamma=0.3),
    "constant": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=4),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.8, total_iters=6),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, total_iters=8, power=2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, T_max=5, eta_min=0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.01),
    "restarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
    "onecycle": lambda s, o: s.OneCycleLR(o, [0.5, 1.0], total_steps=14),
    "onecycle linear, three phases": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=7, steps_per_epoch=2, anneal_strategy="linear", three_phase=True
    ),
    "onecycle without momentum": lambda s, o: s.OneCycleLR(
        o, 0.5, total_steps=14, cycle_momentum=False
    ),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, [0.5, 1.0], step_size_up=3, step_size_down=2),
    "cyclic halved": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 2, mode="triangular2"),
    "cyclic shrinking": lambda s, o: s.CyclicLR(
        o, 0.1, 0.5, 2, mode="exp_range", gamma=0.9, cycle_momentum=False
    ),
    "cyclic by a rule": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 2, scale_fn=lambda c: 1 / c),
    "sequential": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, total_iters=3), s.CosineAnnealingLR(o, 5), s.ExponentialLR(o, 0.9)],
        milestones=[3, 8],
    ),
    "sequential in sequential": lambda s, o: s.SequentialLR(
        o,
        [
            s.SequentialLR(o, [s.StepLR(o, 2), s.ExponentialLR(o, 0.5)], milestones=[4]),
            s.ConstantLR(o, 0.5, 2),
        ],
        milestones=[6],
    ),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, total_iters=2), s.ExponentialLR(o, 0.9)]
    ),
}


def optimizer(t: Any, kind: str = "SGD") -> Any:
    w, b = t.ones(2, requires_grad=True), t.ones(1, requires_grad=True)
    groups = [{"params": [w], "lr": 0.5}, {"params": [b], "lr": 0.1}]
    options = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
    return getattr(t.optim, kind)(groups, **options)


def seen(o: Any) -> list[Any]:
    return [(g["lr"], g.get("momentum"), g.get("betas")) for g in o.param_groups]


def run(t: Any, make: Make, kind: str, steps: int = 13) -> tuple[list[Any], Any, Any]:
    o = optimizer(t, kind)
    scheduler = make(t.optim.lr_scheduler, o)
    rates = [seen(o)]
    for _ in range(steps):
        o.step()
        scheduler.step()
        rates.append(seen(o))
        assert scheduler.get_last_lr() == [g["lr"] for g in o.param_groups]
    return rates, scheduler, o


# What torch itself warns of in the composed ones.
QUIET = "ignore:(To get the last|The epoch parameter|Detected call):UserWarning"


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop", "NAdam"])
@pytest.mark.parametrize("name", CASES)
def test_every_rate_equals_torchs(name: str, kind: str) -> None:
    assert run(leafax, CASES[name], kind)[0] == run(torch, CASES[name], kind)[0]


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("name", CASES)
def test_state_resumes(name: str) -> None:
    whole, _, _ = run(leafax, CASES[name], "SGD")
    _, scheduler, o = run(leafax, CASES[name], "SGD", 6)
    state, groups = scheduler.state_dict(), o.state_dict()
    new = optimizer(leafax)
    again = CASES[name](leafax.optim.lr_scheduler, new)
    new.load_state_dict(groups)
    again.load_state_dict(state)
    rates = []
    for _ in range(7):
        new.step()
        again.step()
        rates.append(seen(new))
    assert rates == whole[7:]


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("name", [n for n in CASES if "cyc" not in n and "restarts" not in n])
def test_a_given_epoch_takes_the_closed_form(name: str) -> None:
    def at(t: Any, epoch: int) -> Any:
        o = optimizer(t)
        scheduler = CASES[name](t.optim.lr_scheduler, o)
        try:
            scheduler.step(epoch)
        except TypeError as error:
            return str(error).split(".")[-1]
        return seen(o)

    for epoch in (0, 3, 5, 9):
        assert at(leafax, epoch) == at(torch, epoch)


@pytest.mark.parametrize("epoch", [0, 1.5, 3, 4.25, 11.5])
@pytest.mark.parametrize("factor", [1, 2])
def test_restarts_between_epochs(epoch: float, factor: int) -> None:
    def at(t: Any) -> Any:
        o = optimizer(t)
        t.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, factor).step(epoch)
        return seen(o)

    assert at(leafax) == at(torch)


METRICS = [5.0, 4.0, 4.0, 3.99999, 4.1, 4.2, 4.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0, math.nan, 2.0]
PLATEAUS: dict[str, dict[str, Any]] = {
    "default": {"patience": 1},
    "absolute": {"patience": 1, "threshold": 0.1, "threshold_mode": "abs", "factor": 0.5},
    "max": {"mode": "max", "patience": 2, "cooldown": 2},
    "max absolute": {"mode": "max", "patience": 0, "threshold_mode": "abs", "min_lr": [0.2, 0.01]},
    "smallest change": {"patience": 0, "factor": 0.99, "eps": 0.004},
}


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateaus_equal_torchs(name: str) -> None:
    def rates(t: Any) -> list[Any]:
        o = optimizer(t)
        scheduler = t.optim.lr_scheduler.ReduceLROnPlateau(o, **PLATEAUS[name])
        found = []
        for i, metric in enumerate(METRICS):
            scheduler.step(t.tensor(metric) if i % 2 else metric)
            if i == 6:
                state = scheduler.state_dict()
                scheduler = t.optim.lr_scheduler.ReduceLROnPlateau(o, **PLATEAUS[name])
                scheduler.load_state_dict(state)
            found.append((scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.last_epoch))
        return found

    assert rates(leafax) == rates(torch)


ERRORS: dict[str, Make] = {
    "no optimizer": lambda s, o: s.StepLR([1], 3),
    "plateau without optimizer": lambda s, o: s.ReduceLROnPlateau([1]),
    "cyclic without optimizer": lambda s, o: s.CyclicLR([1], 0.1, 0.2),
    "onecycle without optimizer": lambda s, o: s.OneCycleLR([1], 0.1, 3),
    "resuming": lambda s, o: s.StepLR(o, 3, last_epoch=2),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda e: 1.0]),
    "multiplicative lambdas": lambda s, o: s.MultiplicativeLR(o, [lambda e: 1.0]),
    "no function": lambda s, o: s.MultiplicativeLR(o, 0.5),
    "constant": lambda s, o: s.ConstantLR(o, 1.5),
    "linear start": lambda s, o: s.LinearLR(o, 0.0),
    "linear end": lambda s, o: s.LinearLR(o, 0.5, 1.5),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "restarts factor": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    "restarts eta_min": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "a"),
    "restarts epoch": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
    "onecycle steps": lambda s, o: s.OneCycleLR(o, 0.1),
    "onecycle negative": lambda s, o: s.OneCycleLR(o, 0.1, -1),
    "onecycle epochs": lambda s, o: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=1),
    "onecycle per epoch": lambda s, o: s.OneCycleLR(o, 0.1, epochs=1, steps_per_epoch=0),
    "onecycle pct": lambda s, o: s.OneCycleLR(o, 0.1, 3, pct_start=2.0),
    "onecycle strategy": lambda s, o: s.OneCycleLR(o, 0.1, 3, anneal_strategy="up"),
    "onecycle max_lr": lambda s, o: s.OneCycleLR(o, [0.1], 3),
    "onecycle momentum": lambda s, o: s.OneCycleLR(o, 0.1, 3, max_momentum=[0.1]),
    "cyclic mode": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    "cyclic base": lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    "plateau factor": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "plateau mode": lambda s, o: s.ReduceLROnPlateau(o, mode="least"),
    "plateau threshold": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="share"),
    "plateau min_lr": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "none in sequence": lambda s, o: s.SequentialLR(o, [], []),
    "none chained": lambda s, o: s.ChainedScheduler([]),
    "no scheduler": lambda s, o: s.SequentialLR(o, [3], []),
    "plateau in sequence": lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    "milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]),
    "past the end": lambda s, o: [x := s.OneCycleLR(o, 0.1, 2), x.step(), x.step(), x.step()],
}


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_torchs(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: B017, PT011
        ERRORS[name](torch.optim.lr_scheduler, optimizer(torch))
    with pytest.raises(theirs.type, match=re.escape(str(theirs.value)) + "$"):
        ERRORS[name](leafax.optim.lr_scheduler, optimizer(leafax))


def test_another_optimizers_scheduler_is_refused_as_in_torch() -> None:
    def message(t: Any) -> str:
        s, o = t.optim.lr_scheduler, optimizer(t)
        with pytest.raises(ValueError) as error:  # noqa: PT011
            s.SequentialLR(o, [s.StepLR(optimizer(t), 1)], [])
        text = str(error.value)
        return text[: text.index(" has ")] + text[text.rindex(", which") :]

    assert message(leafax) == message(torch)


def test_momentum_needs_an_optimizer_that_has_it() -> None:
    o = leafax.optim.Optax([leafax.ones(1, requires_grad=True)], optax.sgd(1.0))
    o.param_groups[0]["lr"] = 0.1
    with pytest.raises(ValueError, match="optimizer must support momentum or beta1 with `cycle_"):
        leafax.optim.lr_scheduler.OneCycleLR(o, 0.1, 3)


def test_a_group_added_later_needs_its_own_bound() -> None:
    def run(t: Any) -> str:
        o = optimizer(t)
        scheduler = t.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, min_lr=[0.0, 0.0])
        o.add_param_group({"params": [t.ones(1, requires_grad=True)]})
        scheduler.step(1.0)
        with pytest.raises(RuntimeError) as error:
            scheduler.step(1.0)
        return str(error.value)

    assert run(leafax) == run(torch)


def test_stepping_before_the_optimizer_warns_as_torch_does() -> None:
    def warned(t: Any, override: bool, get: bool = False) -> list[str]:
        o = optimizer(t)
        scheduler = t.optim.lr_scheduler.ExponentialLR(o, 0.9)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if get:
                scheduler.get_lr()
            elif override:
                o.step()
                o.step = lambda: None
            scheduler.step()
            scheduler.step()
        return [str(w.message) for w in caught]

    for case in ((False,), (True,), (False, True)):
        assert warned(leafax, *case) == warned(torch, *case) != []


def test_a_schedule_compiles_nothing() -> None:
    w = leafax.ones(3, requires_grad=True)
    o = leafax.optim.SGD([w], lr=0.1, momentum=0.9)
    scheduler = leafax.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=10)
    for _ in range(6):
        (w * w).sum().backward()
        o.step()
        o.zero_grad()
        scheduler.step()
    leafax.synchronize()
    assert "compiled" not in {run.how for run in list(leafax._runtime.cut.history)[-4:]}


def test_an_optax_schedule_is_a_lambda() -> None:
    w = leafax.ones(1, requires_grad=True)
    o = leafax.optim.SGD([w], lr=1.0)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.5, 2, 6)
    scheduler = leafax.optim.lr_scheduler.LambdaLR(o, schedule)
    rates = []
    for _ in range(6):
        rates.append(o.param_groups[0]["lr"])
        o.step()
        scheduler.step()
    assert all(type(rate) is float for rate in rates)
    np.testing.assert_allclose(rates, [schedule(i) for i in range(6)])
