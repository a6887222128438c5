"""Gradients from what an earlier program kept: programs that are alike are compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.sameness import same

import leafax

Step = Callable[[Any, Any, Any, int], None]


def _leaves(lib: Any) -> tuple[Any, Any]:
    numbers = np.random.default_rng(0)
    w = lib.from_numpy(numbers.normal(size=(4, 3))).requires_grad_()
    return w, lib.from_numpy(numbers.normal(size=(40, 4)))


def _one_sample(lib: Any, w: Any, x: Any, i: int) -> None:
    out = lib.nn.functional.log_softmax(x[i : i + 1] @ w, -1)
    out[0, int(out.argmax())].backward()


def _accumulated(lib: Any, w: Any, x: Any, i: int) -> None:
    loss = lib.nn.functional.gelu(x[i : i + 2] @ w).cumsum(1).softmax(-1)[:, 0].sum()
    loss.item()
    loss.backward()


def _the_same_twice(lib: Any, w: Any, x: Any, i: int) -> None:
    h = (x[i : i + 1] @ w).exp()
    (h * h).sum().item()
    ((h * h) + h * h.detach()).sum().backward()


def _some_of_it(lib: Any, w: Any, x: Any, i: int) -> None:
    h = lib.nn.functional.layer_norm(x[i : i + 2] @ w, (3,), w[0])
    h.sum().item()
    w.grad = lib.autograd.grad(h.square().sum(), w)[0] + (0 if w.grad is None else w.grad)


@pytest.mark.parametrize("step", [_one_sample, _accumulated, _the_same_twice, _some_of_it])
def test_each_turn_is_one_program(step: Step) -> None:
    w, x = _leaves(leafax)
    compiles = []
    for i in range(16):
        step(leafax, w, x, i)
        compiles.append(leafax.explain(clear=True).compiles)
    assert sum(compiles[8:]) == 0


@pytest.mark.parametrize("step", [_one_sample, _accumulated, _the_same_twice, _some_of_it])
def test_the_gradients_are_right(step: Step) -> None:
    def program(lib: Any, see: Any) -> None:
        w, x = _leaves(lib)
        for i in range(8):
            step(lib, w, x, i)
        see.gradients(w.grad)

    same(program)


def test_what_differs_in_a_number_is_not_alike() -> None:
    """The same ops with other numbers, dims and flags have gradients of their own."""

    def program(lib: Any, see: Any) -> None:
        w, x = _leaves(lib)
        f = lib.nn.functional
        for i, of in enumerate([
            lambda h: f.elu(h, 0.5), lambda h: f.elu(h, 0.7), lambda h: f.celu(h, 0.5),
            lambda h: f.softmax(h, 0), lambda h: f.softmax(h, 1), lambda h: h.cumprod(0),
            lambda h: h.cumprod(1), lambda h: f.gelu(h), lambda h: f.gelu(h, approximate="tanh"),
            lambda h: f.softplus(h, 2.0), lambda h: f.softplus(h, 3.0),
            lambda h: f.layer_norm(h, (3,), eps=1e-5), lambda h: f.layer_norm(h, (3,), eps=0.1),
            lambda h: h.norm(3.0, dim=0), lambda h: h.norm(4.0, dim=0), lambda h: h**3.0,
            lambda h: h**2.5, lambda h: h.clamp(-0.1, 0.1), lambda h: h.clamp(-0.2, 0.2),
        ]):  # fmt: skip
            out = of(x[i : i + 2] @ w)
            out.nansum().item()
            out.nansum().backward()
            see.gradients(w.grad)

    same(program)


def test_a_loss_that_is_observed_with_another_shape_each_time_stops_compiling() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)

    @same
    def program(lib: Any, log: Any) -> None:
        numbers = np.random.default_rng(0)
        w = lib.tensor(numbers.normal(size=(4, 3)), requires_grad=True)
        for n in [*range(5, 14), 11, 12]:
            y = (lib.tensor(numbers.normal(size=(n, 4))) @ w).softmax(-1)
            loss = (y + 1e-3).log().cumsum(0)[:, 1].clamp(max=5.0).tanh().var()
            loss.item()
            loss.backward()
        log(loss.detach(), w.grad)

    observed = [run for run in leafax._runtime.cut.history if run.reason == "item()"]
    assert [run.how for run in observed[-6:]] == ["op by op"] * 6
    assert all(run.saved for run in observed)


def test_data_prepared_in_a_new_way_stop_compiling_though_buffers_are_given_away() -> None:
    numbers = np.random.default_rng(0)
    w = leafax.ones(3, requires_grad=True)
    average = w.detach().clone()
    optimizer = leafax.optim.SGD([w], lr=0.1)
    leafax.explain(clear=True)
    for i in range(12):
        x = leafax.from_numpy(numbers.normal(size=(8, 16)).astype("float32"))
        x[:, : i + 1] = x[2:3, : i + 1].mul_(0.5)
        loss = (x[:, :3] @ w).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with leafax.no_grad():
            average.mul_(0.9).add_(w, alpha=0.1)
    anew = [run for run in leafax._runtime.cut.history if "prepared" in run.reason]
    assert [run.how for run in anew[-4:]] == ["op by op"] * 4
