"""Usual loops compile their steps as often as hand-written `jax.jit` does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import leafax
from leafax import nn, optim
from leafax._core.run_log import STEP

F = nn.functional
_widths = itertools.count(401)  # a program of each test's own
ROWS = 8
Step = Callable[..., Any]
Loop = Callable[[Any], Iterator[None]]


def _batch(k: int, rows: int = ROWS) -> tuple[Any, Any]:
    x = np.random.default_rng(k).standard_normal((rows, 6)).astype(np.float32)
    return leafax.from_numpy(x), leafax.from_numpy(np.arange(rows) % 3)


def _loss(model: Any, k: int, rows: int = ROWS) -> Any:
    x, y = _batch(k, rows)
    return F.cross_entropy(model(x), y)


def _trained(
    model: Any, after: Callable[[Any, int], Any], before: Callable[[Any], Any] = lambda model: None
) -> Iterator[None]:
    """Train as tutorials do, and look at the loss in some way after each step."""
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for k in range(5):
        optimizer.zero_grad()
        loss = _loss(model, k)
        loss.backward()
        before(model)
        optimizer.step()
        after(loss, k)
        yield


def _summed(start: Callable[[], Any], add: Callable[[Any, Any], Any]) -> Loop:
    def loop(model: Any) -> Iterator[None]:
        total, losses = start(), []

        def after(loss: Any, k: int) -> None:
            nonlocal total
            total = add(total, loss)
            losses.append(loss)

        yield from _trained(model, after)
        told = float(total.detach() if isinstance(total, leafax.Tensor) else total)
        np.testing.assert_allclose(told, sum(loss.item() for loss in losses), rtol=1e-5)

    return loop


def _in_place(total: Any, loss: Any) -> Any:
    total += loss.detach()
    return total


def _at_the_end(model: Any) -> Iterator[None]:
    optimizer = optim.SGD(model.parameters(), 0.1)
    for k in range(5):
        loss = _loss(model, k)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        yield


def _never(model: Any) -> Iterator[None]:
    optimizer = optim.SGD(model.parameters(), 0.01)
    for k in range(5):
        _loss(model, k).backward()
        optimizer.step()
        yield


def _micro_batches(model: Any) -> Iterator[None]:
    optimizer = optim.SGD(model.parameters(), 0.1)
    for k in range(5):
        optimizer.zero_grad()
        for j in range(3):
            (_loss(model, 3 * k + j) / 3).backward()
        optimizer.step()
        yield


def _kept(model: Any) -> Iterator[None]:
    losses: list[Any] = []
    return _trained(model, lambda loss, k: losses.append(loss.detach()))


def _smoothed(model: Any) -> Iterator[None]:
    told: list[Any] = []

    def after(loss: Any, k: int) -> None:
        told.append(0.9 * told[-1] + 0.1 * loss.detach() if told else loss.detach())

    return _trained(model, after)


def _scheduled(model: Any) -> Iterator[None]:
    optimizer = optim.SGD(model.parameters(), 0.1)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for k in range(5):
        optimizer.zero_grad()
        loss = _loss(model, k)
        loss.backward()
        optimizer.step()
        schedule.step()
        loss.item()
        yield


def _counted(model: Any) -> Iterator[None]:
    optimizer, right = optim.SGD(model.parameters(), 0.1), 0
    for k in range(5):
        x, y = _batch(k)
        optimizer.zero_grad()
        out = model(x)
        F.cross_entropy(out, y).backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum()
        yield
    assert 0 <= right.item() <= 5 * ROWS  # type: ignore[attr-defined]


def _evaluated(model: Any) -> Iterator[None]:
    def after(loss: Any, k: int) -> None:
        with leafax.no_grad():
            _loss(model, 99, 2 * ROWS).item()

    return _trained(model, after)


def _smaller_at_last(model: Any) -> Iterator[None]:
    optimizer = optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        for rows in (ROWS, ROWS, 5):
            optimizer.zero_grad()
            loss = _loss(model, rows, rows)
            loss.backward()
            optimizer.step()
            loss.item()
        yield


def _scaled(model: Any) -> Iterator[None]:
    optimizer, scaler = optim.SGD(model.parameters(), 0.1), leafax.amp.GradScaler("cpu")
    for k in range(5):
        optimizer.zero_grad()
        with leafax.autocast("cpu", dtype=leafax.bfloat16):
            loss = _loss(model, k)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        loss.item()
        yield


def _two_optimizers(model: Any) -> Iterator[None]:
    judge = nn.Linear(3, next(_widths))
    made, judged = optim.SGD(model.parameters(), 0.1), optim.SGD(judge.parameters(), 0.1)
    for k in range(5):
        x, _ = _batch(k)
        fake = model(x)
        judged.zero_grad()
        told = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(x[:, 3:])).mean()
        told.backward()
        judged.step()
        made.zero_grad()
        loss = F.softplus(-judge(fake)).mean()
        loss.backward()
        made.step()
        loss.item()
        yield


def _averaged(model: Any) -> Iterator[None]:
    averages = [p.detach().clone() for p in model.parameters()]

    def after(loss: Any, k: int) -> None:
        with leafax.no_grad():
            for average, p in zip(averages, model.parameters(), strict=True):
                average.lerp_(p, 0.1)

    return _trained(model, after)


def _clipped(model: Any) -> Iterator[None]:
    return _trained(
        model, lambda loss, k: loss.item(),
        lambda model: nn.utils.clip_grad_norm_(model.parameters(), 1.0),
    )  # fmt: skip


#: Loops, how often they compile a step, and how often hand-written JAX does.
LOOPS: dict[str, tuple[Loop, int, int]] = {
    "the loss is looked at": (lambda model: _trained(model, lambda loss, k: loss.item()), 1, 1),
    "zero_grad at the end": (_at_the_end, 1, 1),
    "no zero_grad": (_never, 2, 1),  # nothing tells the first step from one of the loop above
    "three micro-batches": (_micro_batches, 1, 1),
    "clipped": (_clipped, 1, 1),
    "scheduled": (_scheduled, 1, 1),
    "averages by hand": (_averaged, 1, 1),
    "total += loss.item()": (_summed(float, lambda total, loss: total + loss.item()), 1, 1),
    "total += loss.detach()": (_summed(float, _in_place), 1, 1),
    "zeros() += loss.detach()": (_summed(lambda: leafax.zeros(()), _in_place), 1, 1),
    "total + loss": (_summed(float, lambda total, loss: total + loss), 1, 1),
    "losses that are kept": (_kept, 1, 1),
    "a smoothed loss": (_smoothed, 1, 1),
    "what is right is counted": (_counted, 1, 1),
    "evaluation between": (_evaluated, 1, 1),
    "a smaller batch at last": (_smaller_at_last, 2, 2),
    "scaled": (_scaled, 1, 1),
    "two optimizers": (_two_optimizers, 2, 2),
}


def _module() -> Any:
    width = next(_widths)
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))


def _flax() -> Any:
    linen = pytest.importorskip("flax.linen")
    from leafax.adapters.linen import Model

    net = linen.Sequential([linen.Dense(next(_widths)), linen.relu, linen.Dense(3)])
    return Model(net, net.init(jax.random.key(0), np.ones((ROWS, 6), np.float32)))


@pytest.mark.quick(9, each="make")
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("make", [_module, _flax])
def test_steps_are_compiled_as_often_as_by_hand(make: Callable[[], Any], name: str) -> None:
    loop, most, by_hand = LOOPS[name]
    model = make()
    leafax.synchronize()
    leafax.explain(clear=True)
    turns = []
    for _ in loop(model):
        runs = leafax.explain(clear=True)
        turns.append(sum(run.how == "compiled" and run.reason == STEP for run in runs))
    assert sum(turns) == most >= by_hand
    assert sum(turns[:2]) == most, turns
