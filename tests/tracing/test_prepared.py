"""Data that is prepared in another way each time does not compile the step anew."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from helpers.sameness import same

import leafax


def _train(lib: Any, see: Any, steps: int, after: Any = None) -> None:
    """Images that are flipped and shifted by chance, one by one."""
    chance, numbers = random.Random(0), np.random.default_rng(0)
    weight = lib.tensor(numbers.normal(size=(12, 3)), requires_grad=True)
    optimizer = lib.optim.SGD([weight], lr=0.05, momentum=0.9)
    for _ in range(steps):
        images = lib.tensor(numbers.normal(size=(8, 3, 4)))
        labels = lib.tensor(numbers.integers(0, 3, 8))
        batch = []
        for image in images:
            if chance.random() < 0.5:
                image = image.flip(-1)
            if chance.random() < 0.5:
                image = lib.roll(image, 1, 0) * 2
            batch.append(image)
        out = lib.stack(batch).flatten(1) @ weight
        loss = lib.nn.functional.cross_entropy(out, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        see(loss, weight, out.grad_fn)
        if after is not None:
            after()


def test_values_and_graphs_are_those_of_pytorch() -> None:
    same(lambda lib, see: _train(lib, see, 7))


def test_new_preparations_run_on_their_own() -> None:
    compiles: list[int] = []

    def look() -> None:
        compiles.append(leafax.explain(clear=True).compiles)

    leafax.explain(clear=True)
    _train(leafax, lambda *x: None, 24, look)
    assert sum(compiles[8:]) == 0, compiles


def test_parameters_that_are_drawn_are_no_part_of_the_first_step() -> None:
    """The step would be compiled with them, and without them when it is met again."""
    leafax.manual_seed(5)
    expected = [leafax.randn(6, 5).mul(0.1).tolist(), leafax.randn(3, 6).tolist()]
    leafax.explain(clear=True)
    leafax.manual_seed(5)
    first = (leafax.randn(6, 5) * 0.1).requires_grad_()
    last = leafax.randn(3, 6, requires_grad=True)
    optimizer = leafax.optim.Adam([first, last], lr=0.0)
    runs = []
    for n in range(3):
        x = leafax.from_numpy(np.full((4, 5), n, np.float32))
        loss = (leafax.nn.functional.linear(x, first).tanh() @ last.t()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        runs.append([(run.reason, run.how) for run in leafax.explain(clear=True)])
    drawn = ("an optimizer was made", "op by op")
    assert runs[0] == [drawn, ("optimizer.step()", "compiled")]
    assert runs[1:] == [[("optimizer.step()", "cached")]] * 2
    assert [first.tolist(), last.tolist()] == expected


def test_leaves_that_are_drawn_each_time_are_part_of_the_step() -> None:
    """But the first time."""
    net = leafax.full((4, 1), 0.3, requires_grad=True)
    optimizer = leafax.optim.SGD([net], lr=0.1)
    runs = []
    for _ in range(5):
        points = leafax.rand(7, 4, requires_grad=True) + leafax.randn(7, 4)
        (points @ net).sin().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        runs.append([run.how for run in leafax.explain(clear=True)])
    assert runs[0] == ["op by op", "op by op", "compiled"]  # `net`, the first leaves, the step
    assert runs[3:] == [["cached"]] * 2


def test_a_preparation_that_is_always_the_same_stays_in_the_step() -> None:
    programs: list[int] = []
    weight = leafax.ones(4, 2, requires_grad=True)
    optimizer = leafax.optim.SGD([weight], lr=0.1)
    for _ in range(8):
        leafax.explain(clear=True)
        x = leafax.ones(3, 4).flip(0).roll(1, 0).mul(2).add(1).sin()
        loss = (x @ weight).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        programs.append(len(leafax.explain(clear=True).runs))
    assert programs[2:] == [1] * 6


def test_views_made_anew_after_the_cut_are_no_preparation() -> None:
    def masks(lib: Any, see: Any) -> None:
        with lib.autograd.detect_anomaly(check_nan=False):  # which remembers no steps
            for n in range(3, 12):
                x = lib.ones(n, n + 1, requires_grad=True)
                mask = (lib.arange(2 * n * (n + 1)) % n > 1).reshape(2, n + 1, n)[1].permute(1, 0)
                see(x[mask])

    same(masks)
