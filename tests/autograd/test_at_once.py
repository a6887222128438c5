"""Loops that never do the same twice: their ops and gradients are computed at once by NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, run, same

import leafax
from leafax._core.run_log import at_once
from leafax._core.trie import local
from leafax._storage import data_writes
from leafax._tracing.novelty import forget_passes, is_unrepeated, note_new


@pytest.fixture
def unrepeated() -> Iterator[None]:
    """Take the thread for one whose loops never do the same twice."""
    for _ in range(8):
        note_new()
    assert is_unrepeated()
    yield
    forget_passes()


@pytest.fixture
def written_to_by_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests did to tensors behind the version counters.

    From then on no pass through the graph of an earlier program is like another.
    """
    monkeypatch.setattr(local, "turned", False)
    monkeypatch.setattr(data_writes, "_written", {})
    monkeypatch.setattr(data_writes, "_moved", {})


def rows(lib: Any) -> tuple[Any, Any, Any]:
    """Return two leaves and data of one shape."""
    a = lib.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], dtype=lib.float64, requires_grad=True)
    b = lib.tensor([[1.0, 2.0, -0.5], [-1.5, 0.75, 1.25]], dtype=lib.float64, requires_grad=True)
    return a, b, lib.tensor([[2.0, 0.5, 1.0], [3.0, -1.0, 0.5]], dtype=lib.float64)


CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "operators": lambda lib, a, b, x: -a * b + x / (b * b + 1.5) - 2 * a**3 + (3.5 - b),
    "numbers that change": lambda lib, a, b, x: a * x[0, 0].item() + b**2 + 0.25 * b - a / 3,
    "functions": lambda lib, a, b, x: lib.tanh(a) * lib.sigmoid(b).exp() + lib.maximum(a, x),
    "products": lambda lib, a, b, x: lib.nn.functional.linear(a, b, b[:, 0]) @ x.relu(),
    "joins": lambda lib, a, b, x: lib.cat([lib.cat([a, b, x], 1), lib.cat([b, a, a], -1)]),
    "stacks": lambda lib, a, b, x: lib.stack([a, b, a * 2], -1) * lib.stack([b, x, b], 2),
    "reductions": lambda lib, a, b, x: (a.softmax(-1) * b.mean(0)).sum(1) + b.std() + a.amax(1),
    "views": lambda lib, a, b, x: (a * 2).t()[1:].unsqueeze(0) * (b + x).view(3, 2)[:2],
    "picks": lambda lib, a, b, x: a[lib.tensor([1, 0, 1])] * b.gather(1, lib.tensor([[2], [0]]))[0],
    "conditions": lambda lib, a, b, x: lib.where(a > b, a * x, b) * lib.clamp(a, -0.5, 1.0),
    "dtypes": lambda lib, a, b, x: a.float() * b.to(lib.float64) + x.int(),
    "losses": lambda lib, a, b, x: lib.nn.functional.cross_entropy(a, lib.tensor([2, 0])) * b,
    "smooth losses": lambda lib, a, b, x: lib.nn.functional.smooth_l1_loss(a * b, x) + a,
    "embeddings": lambda lib, a, b, x: lib.nn.functional.embedding(lib.tensor([1, 1, 0]), a) ** 2,
    "norms": lambda lib, a, b, x: lib.nn.functional.layer_norm(a * b, (3,), x[0], b[0]),
    "writes": lambda lib, a, b, x: (a * 1).mul_(b).add_(x).relu_() * b,
    "results in place": lambda lib, a, b, x: (a * b).clone().fill_(2) * a,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("unrepeated")
def test_calls(name: str) -> None:
    before = at_once.ops

    @same
    def program(torch: Any, log: Log) -> None:
        a, b, x = rows(torch)
        for turn in range(2):
            y = CALLS[name](torch, a, b, x)
            log(y, y.grad_fn, y.requires_grad)
            (y.sin() * (turn + 1)).sum().backward()
        log.gradients(a.grad, b.grad)
        y = CALLS[name](torch, a, b, x).cos().sum()
        (g,) = torch.autograd.grad(y, a, create_graph=True)
        log.gradients(g)
        (g * g).sum().backward()
        log.gradients(a.grad, b.grad)

    assert at_once.ops > before


@pytest.mark.usefixtures("unrepeated")
def test_graphs_that_are_used_twice_or_freed() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        a, b, x = rows(torch)
        y = (a * b).exp()
        z = (y + a).sum()
        z.backward(retain_graph=True)
        log.gradients(a.grad, b.grad)
        z.backward(retain_graph=True)
        (y * x).sum().backward()
        log.gradients(a.grad, b.grad)
        try:
            z.backward()
        except RuntimeError as error:
            log(error)
        b.grad = None
        (a.detach() * b).sum().backward()
        log.gradients(a.grad, b.grad)
        log(b.grad.is_leaf)


WRITES: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "a leaf": lambda lib, a, b, x, y: b.data.mul_(2) and None,
    "a leaf in no_grad": lambda lib, a, b, x, y: lib.no_grad()(b.mul_)(2),
    "data": lambda lib, a, b, x, y: x.mul_(2),
    "a part of data": lambda lib, a, b, x, y: x[0].zero_(),
    "a number into data": lambda lib, a, b, x, y: x.__setitem__((0, 1), 5.0),
    "a result": lambda lib, a, b, x, y: y.add_(1),
    "a detached result": lambda lib, a, b, x, y: y.detach().zero_(),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.usefixtures("unrepeated")
def test_writes_to_what_was_saved(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        a, b, x = rows(torch)
        y = (a * b * x).exp()
        z = (y * 2 + a).sum()
        WRITES[name](torch, a, b, x, y)
        log(y, x)
        try:
            z.backward()
        except RuntimeError as error:
            log(error)
        log.gradients(a.grad)


@pytest.mark.usefixtures("unrepeated")
def test_hooks_and_retained_gradients() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        a, b, x = rows(torch)
        y = a * b
        y.retain_grad()
        y.register_hook(lambda g: g * 2)
        a.register_hook(lambda g: log(g))
        z = y.tanh().sum()
        z.grad_fn.register_hook(lambda *gs: log(len(gs)))
        z.backward()
        log.gradients(y.grad, a.grad, b.grad)


@pytest.mark.usefixtures("unrepeated")
def test_leaves_change_between_passes() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        a, b, x = rows(torch)
        for _ in range(3):
            loss = (torch.nn.functional.linear(a, b) * x[:, :2]).tanh().sum()
            a.grad = b.grad = None
            loss.backward()
            with torch.no_grad():
                a -= 0.1 * a.grad
                b.sub_(b.grad, alpha=0.1)
            log(loss, a, b)
        a.requires_grad_(False)
        y = (a * b).sum()
        y.backward()
        log.gradients(a.grad, b.grad)


@pytest.mark.usefixtures("unrepeated")
def test_labels_out_of_range_raise() -> None:
    logits = leafax.zeros(2, 3, requires_grad=True)
    leafax.nn.functional.cross_entropy(logits, leafax.tensor([0, 2])).backward()
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        leafax.nn.functional.cross_entropy(logits, leafax.tensor([0, 3])).item()


def tree(lib: Any, rng: Any, leaf: Any, join: Any, leaves: int) -> Any:
    """Return the value of a random tree of so many leaves."""
    if leaves == 1:
        return leaf(lib.tensor([int(rng.integers(5))]))
    k = int(rng.integers(1, leaves))
    parts = [tree(lib, rng, leaf, join, n) for n in (k, leaves - k)]
    return lib.tanh(join(lib.cat(parts, 1)))


def grow_trees(lib: Any, log: Log, sizes: Any = range(2, 12)) -> None:
    rng = np.random.default_rng(0)
    leaf, join = lib.nn.Embedding(5, 4).double(), lib.nn.Linear(8, 4).double()
    parameters = [*leaf.parameters(), *join.parameters()]
    with lib.no_grad():
        for p in parameters:
            p.copy_(lib.tensor(rng.normal(size=tuple(p.shape))))
    optimizer = lib.optim.SGD(parameters, lr=0.1)
    for leaves in sizes:
        loss = (tree(lib, rng, leaf, join, leaves) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss)
    log(parameters)


@pytest.mark.usefixtures("written_to_by_none")
def test_trees_are_computed_at_once_when_none_comes_again() -> None:
    expected = run(grow_trees, torch)
    leafax.explain(clear=True)
    assert run(grow_trees, leafax) == expected
    assert is_unrepeated()
    last = leafax.explain()[-3:]
    assert [(r.reason, r.nodes) for r in last] == [("optimizer.step()", 1)] * 3
    assert "computed at once" in str(leafax.explain())


@pytest.mark.usefixtures("written_to_by_none", "unrepeated")
def test_loops_that_do_the_same_again_are_compiled_again() -> None:
    a, b, x = rows(leafax)
    leafax.explain(clear=True)
    for _ in range(16):
        loss = (leafax.nn.functional.linear(a, b) * x[:, :2]).tanh().sum()
        a.grad = b.grad = None
        loss.backward()
        with leafax.no_grad():
            a -= 0.1 * a.grad
            b -= 0.1 * b.grad
        leafax.synchronize()
    assert not is_unrepeated()
    assert [r.how for r in leafax.explain()[-3:]] == ["cached"] * 3
    assert leafax.explain()[-1].nodes > 8


def test_threads_take_turns_of_their_own() -> None:
    expected = run(grow_trees, torch)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(run(grow_trees, leafax))) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected, expected]


def episodes(lib: Any, log: Log) -> None:
    rng = np.random.default_rng(1)
    w = lib.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    for steps in (3, 5, 4, 7, 6, 9, 8, 10, 2, 11):
        logs, worth = [], lib.tensor(rng.normal(size=steps))
        for _ in range(steps):
            p = lib.softmax(w @ lib.tensor(rng.normal(size=4)), 0)
            logs.append(p.log()[1:2].squeeze(0))
            logs[-1].item()
        loss = lib.stack([-value * r for value, r in zip(logs, worth, strict=True)]).sum()
        w.grad = None
        loss.backward()
        log(loss)
        log.gradients(w.grad)
        with lib.no_grad():
            w -= 0.01 * w.grad


@pytest.mark.usefixtures("written_to_by_none")
def test_episodes_of_other_lengths() -> None:
    expected = run(episodes, torch)
    assert run(episodes, leafax) == expected
    assert is_unrepeated()
