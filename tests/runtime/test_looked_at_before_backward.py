"""Loops that look at their loss before `backward()`: a pass through what the cut kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from helpers.sameness import Log, same
from helpers.walks import assert_walked_at_first_only

import leafax


def tensors(lib: Any, seed: int = 0) -> list[Any]:
    """Two weights and a bias of a small net, and a batch."""
    rows = [[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.25, 2.0, 1.0]]
    w = lib.tensor(rows, dtype=lib.float64, requires_grad=True)
    v = lib.tensor(rows[::-1], dtype=lib.float64, requires_grad=True)
    b = lib.zeros(3, dtype=lib.float64, requires_grad=True)
    x = lib.tensor([[1.0, seed, 2.0], [0.5, 1.0, -seed]], dtype=lib.float64)
    return [w, v, b, x]


def loss_of(w: Any, v: Any, b: Any, x: Any) -> Any:
    return (((x @ w + b).tanh() @ v).relu() - 1).square().mean()


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
def test_training(rule: str) -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        options = {"momentum": 0.9} if rule == "SGD" else {}
        optimizer = getattr(torch.optim, rule)([w, v, b], lr=0.1, **options)
        for turn in range(8):
            loss = loss_of(w, v, b, x + turn)
            log(round(loss.item(), 8))
            optimizer.zero_grad(set_to_none=turn != 5)
            if turn == 3:
                v.requires_grad_(False)
            if turn == 6:
                v.requires_grad_(True)
            loss.backward()
            if turn % 2:
                log(round(w.grad.sum().item(), 8))
            optimizer.step()
            log(w.detach(), b.grad, w._version, loss)


def test_gradients_add_up_and_graphs_are_kept() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        for turn in range(6):
            loss = loss_of(w, v, b, x)
            log(round(loss.item(), 8))
            loss.backward(retain_graph=turn in (1, 2, 4))
            with log.catch():
                loss.backward()
            log(w.grad, v.grad, b.grad._version, loss.grad_fn.name())
            if turn == 3:
                w.grad = None


@pytest.mark.exhaustive
def test_writes_and_hooks_are_seen() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        handle = None
        for turn in range(10):
            loss = loss_of(w, v, b, x)
            log(round(loss.item(), 8))
            if turn == 4:
                with torch.no_grad():
                    v.mul_(2)
            if turn == 5:
                v.data.mul_(0.5)
            if turn == 6:
                handle = w.register_hook(lambda g: g * 10)
            if turn == 7:
                assert handle is not None
                handle.remove()
                loss.grad_fn.register_prehook(lambda g: (g[0] * 3,))
            if turn == 8:
                v.data = v.data + 1
            with log.catch():
                loss.backward()
            log([None if p.grad is None else p.grad.clone() for p in (w, v, b)])
            w.grad = v.grad = b.grad = None


def test_a_loss_of_many_turns() -> None:
    """As of an episode: each turn is looked at, and keeps its part of the graph."""

    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        optimizer = torch.optim.SGD([w, v, b], lr=0.1)
        for episode in range(4):
            parts = []
            for turn in range(3):
                part = loss_of(w, v, b, x + turn)
                if part.item() > 0:
                    parts.append(part * (turn + 1))
            optimizer.zero_grad()
            total = torch.stack(parts).sum()
            if episode == 2:
                log(round(total.item(), 8))
            total.backward()
            optimizer.step()
            log(w.detach())
            log.gradients(v.grad, b.grad)


@pytest.mark.exhaustive
def test_a_state_that_is_carried_on() -> None:
    """Through time, cut at each look, with the same tensor in several places."""

    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        for _ in range(4):
            h = x[:, :3] * w.sum()
            for _ in range(3):
                h = (h @ w + b).tanh()
                log(round(h.sum().item(), 8))
            loss = (h * h @ v).sum() + (h @ w).sum()
            log(round(loss.item(), 8))
            loss.backward()
            log.gradients(w.grad, v.grad, b.grad)
            w.grad = b.grad = None


def test_which_tensors_are_one_matters() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, _, x = tensors(torch)
        for a, c in ((w, v), (w, v), (w, v), (w, w), (w, w), (v, w), (w, w), (v, v)):
            loss = (x @ a * (x @ c)).sum()
            log(round(loss.item(), 8))
            loss.backward()
            log([None if p.grad is None else p.grad + 0 for p in (w, v)])
            w.grad = v.grad = None


def test_another_thread_reads_between_backward_and_step() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        optimizer = torch.optim.SGD([w, v, b], lr=0.1, momentum=0.9)

        def read() -> None:
            with torch.no_grad():
                (w * 2 + v).sum().item()

        for turn in range(8):
            loss = loss_of(w, v, b, x)
            if turn % 2:
                log(round(loss.item(), 8))
            optimizer.zero_grad()
            loss.backward()
            thread = threading.Thread(target=read)
            thread.start()
            thread.join()
            optimizer.step()
            log(w.detach(), v.detach(), w._version)


@pytest.mark.parametrize("turns", [1, 3])
def test_the_graph_is_walked_once(turns: int) -> None:
    w, v, b, x = tensors(leafax)
    optimizer = leafax.optim.Adam([w, v, b])

    def step() -> None:
        parts = []
        for turn in range(turns):
            parts.append(loss_of(w, v, b, x + turn))
            assert parts[-1].item() > 0
        loss = parts[0] if turns == 1 else parts[0] + parts[1] * parts[2]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    assert_walked_at_first_only(step)
