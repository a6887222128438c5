"""Between two steps an optimizer's state is a bundle of arrays; nobody can tell but by the time."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3))
W = [RNG.normal(size=(3, 3)) / 2 for _ in range(4)]
MANY = 7  # steps, after which the state is bundled


class Loop:
    """A loop whose steps are the same program; AdamW unless it says otherwise."""

    def __init__(self, t: Any, make: Callable[[Any, Any], Any] | None = None) -> None:
        self.t = t
        self.weights = [t.tensor(w, requires_grad=True) for w in W]
        made = make or (lambda t, p: t.optim.AdamW(p, lr=0.1))
        self.optimizer = made(t, self.weights)

    def run(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.loss().backward()
            self.optimizer.step()

    def loss(self) -> Any:
        h = self.t.tensor(X)
        for w in self.weights:
            h = self.t.tanh(h @ w)
        return h.square().sum()


def is_bundled(optimizer: Any) -> bool:
    return "state" not in vars(optimizer)


def seen(optimizer: Any) -> list[Any]:
    """Copy an optimizer's state: names and values, parameter by parameter."""
    entries = [optimizer.state[p] for g in optimizer.param_groups for p in g["params"]]
    return [{k: v.detach().clone() for k, v in entry.items()} for entry in entries]


def bundled(make: Callable[[Any, Any], Any] | None = None) -> Loop:
    """Return a loop whose optimizer's state is bundled."""
    loop = Loop(leafax, make)
    loop.run(MANY)
    assert is_bundled(loop.optimizer)
    return loop


MAKE: dict[str, Callable[[Any, Any], Any]] = {
    "adamw": lambda t, p: t.optim.AdamW(p, lr=0.1),
    "rmsprop": lambda t, p: t.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "two groups": lambda t, p: t.optim.Adam(
        [{"params": p[:2]}, {"params": p[2:], "lr": 0.01}], lr=0.1
    ),
    "momentum": lambda t, p: t.optim.SGD([*p], lr=0.01, momentum=0.9),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_bundled_state_is_torchs_whenever_it_is_asked_for(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        loop = Loop(t, MAKE[name])
        for steps in (1, MANY, 1, 12, 30):
            loop.run(steps)
            log(seen(loop.optimizer))
        log(loop.weights)


def test_steps_bundle_a_state_that_nobody_holds_and_no_other() -> None:
    loop = bundled()
    assert not is_bundled(Loop(leafax).optimizer)
    state = loop.optimizer.state
    assert not is_bundled(loop.optimizer) and loop.optimizer.state is state
    loop.run(40)
    assert not is_bundled(loop.optimizer)  # `state` is held
    entry = state[loop.weights[1]]
    del state
    loop.run(40)
    assert not is_bundled(loop.optimizer)  # an entry is
    moment = entry["exp_avg"]
    before = moment.clone()
    del entry
    loop.run(100)
    assert not is_bundled(loop.optimizer)  # a tensor is
    assert not np.array_equal(moment.numpy(), before.numpy())
    assert loop.optimizer.state[loop.weights[1]]["exp_avg"] is moment
    del moment
    loop.run(400)
    assert is_bundled(loop.optimizer)


def test_a_bundled_step_is_the_program_that_it_was() -> None:
    loop = Loop(leafax)
    loop.run(3)
    runs = []
    for _ in range(MANY):
        loop.run()
        runs.append(leafax.explain().runs[-1])
    assert is_bundled(loop.optimizer)
    assert len({(run.nodes, run.inputs, run.outputs, run.donated) for run in runs}) == 1
    assert {run.how for run in runs} == {"cached"}


def test_hooks_between_the_update_and_the_program_see_the_new_state() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        loop = Loop(t)
        loop.run(MANY)
        first = loop.weights[0]
        hook = loop.optimizer.register_step_post_hook(
            lambda o, args, kwargs: log(o.state[first]["exp_avg"] * 1, o.state[first]["step"] * 1)
        )
        loop.run(2)
        hook.remove()
        loop.run(2)
        log(seen(loop.optimizer), loop.weights)


def test_parameters_frozen_replaced_and_added_meanwhile() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        loop = Loop(t)
        loop.run(MANY)
        loop.weights[1].requires_grad_(False)
        loop.run(3)
        log(seen(loop.optimizer))
        loop.run(MANY)
        loop.weights[1].requires_grad_(True)
        new = t.tensor(W[0], requires_grad=True)
        loop.weights.append(new)
        loop.optimizer.add_param_group({"params": [new], "lr": 0.01})
        loop.run(20)
        log(seen(loop.optimizer), loop.weights)


def test_a_state_that_is_loaded_or_assigned_takes_the_place_of_the_bundle() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        loop = Loop(t)
        loop.run(2)
        saved = copy.deepcopy(loop.optimizer.state_dict())
        loop.run(MANY)
        loop.optimizer.load_state_dict(saved)
        loop.run(MANY)
        log(seen(loop.optimizer))
        loop.run(MANY)
        loop.optimizer.state = type(loop.optimizer.state)(dict)
        loop.run(MANY)
        log(seen(loop.optimizer), loop.weights)


def test_bundled_optimizers_are_copied_and_pickled_with_their_state() -> None:
    loop = bundled()
    other = pickle.loads(pickle.dumps(copy.deepcopy(loop.optimizer)))
    loop.run()
    mine = seen(loop.optimizer)
    assert len(other.state) == len(W) and len(mine) == len(W)
    for p, entry in zip(other.param_groups[0]["params"], mine, strict=True):
        assert other.state[p]["step"].item() + 1 == entry["step"].item() == MANY + 1


def test_a_compiled_step_after_plain_ones_goes_on_with_the_state() -> None:
    loop, expected = bundled(), Loop(torch)
    compiled = leafax.compile(lambda: loop.run())
    for _ in range(5):
        compiled()
    loop.run(MANY)
    compiled()
    expected.run(MANY + 5 + MANY + 1)
    for mine, theirs in zip(loop.weights, expected.weights, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)


def test_other_threads_read_the_state_while_the_loop_runs() -> None:
    loop, expected = bundled(), Loop(torch)
    steps: list[float] = []
    done = threading.Event()

    def read() -> None:
        first = loop.weights[0]
        while not done.is_set():
            steps.append(loop.optimizer.state[first]["step"].item())

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    for _ in range(60):
        loop.optimizer._bundling.left = 1
        loop.run()
    done.set()
    for thread in readers:
        thread.join()
    assert steps and {*steps} <= {*map(float, range(MANY, MANY + 61))}
    expected.run(MANY + 60)
    for mine, theirs in zip(loop.weights, expected.weights, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)


def test_a_program_that_fails_gives_the_bundle_its_arrays_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = bundled()
    before = [w.tolist() for w in loop.weights]

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("no program runs")

    with monkeypatch.context() as patched:
        patched.setattr("leafax.functional.execution.plan.Plan._run", fail)
        with pytest.raises(ValueError, match="no program runs"):
            loop.run()
    assert is_bundled(loop.optimizer)
    for w, old in zip(loop.weights, before, strict=True):
        assert w.tolist() == old
        assert loop.optimizer.state[w]["step"].item() == MANY
    loop.run()
    assert loop.optimizer.state[loop.weights[0]]["step"].item() == MANY + 1


def test_the_class_has_no_state() -> None:
    with pytest.raises(AttributeError, match="type object 'Adam' has no attribute 'state'"):
        leafax.optim.Adam.state  # noqa: B018
