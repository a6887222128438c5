"""`autograd.grad` in loops: later turns take the gradients as the first ones were recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same
from helpers.walks import assert_walked_at_first_only

import leafax


def tensors(lib: Any) -> list[Any]:
    """Weights and biases of a small net, and a batch."""
    rows = [[0.5, -1.0, 0.25], [1.5, 0.75, -0.5]]
    w = lib.tensor(rows, dtype=lib.float64, requires_grad=True)
    v = lib.tensor(rows[::-1], dtype=lib.float64).t().detach().requires_grad_()
    b = lib.zeros(2, dtype=lib.float64, requires_grad=True)
    x = lib.tensor([[1.0, 0.5, 2.0], [0.5, 1.0, -1.5]], dtype=lib.float64)
    return [w, v, b, x]


def net(lib: Any, params: Any, x: Any) -> Any:
    w, v, b = params
    return lib.nn.functional.linear((lib.nn.functional.linear(x, w, b)).tanh(), v)


def manual(lib: Any, params: Any, x: Any) -> None:
    grads = lib.autograd.grad(net(lib, params, x).square().mean(), params)
    with lib.no_grad():
        for p, g in zip(params, grads, strict=True):
            p -= 0.1 * g


def penalty(lib: Any, params: Any, x: Any) -> None:
    x = x.clone().requires_grad_()
    out = net(lib, params, x)
    (g,) = lib.autograd.grad(out.sum(), x, create_graph=True)
    loss = (g.norm(2, dim=1) - 1).square().mean() + out.mean()
    loss.backward()


def inner_steps(lib: Any, params: Any, x: Any) -> None:
    fast = params
    for _ in range(2):
        loss = net(lib, fast, x).square().mean()
        grads = lib.autograd.grad(loss, fast, create_graph=True)
        fast = [p - 0.1 * g for p, g in zip(fast, grads, strict=True)]
    net(lib, fast, x).square().mean().backward()


LOOPS: dict[str, Callable[[Any, Any, Any], None]] = {
    "updates by hand": manual, "gradient penalty": penalty, "steps within steps": inner_steps,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        *params, x = tensors(torch)
        for turn in range(5):
            LOOPS[name](torch, params, x + turn)
            log([p.detach() + 0 for p in params])
            log([None if p.grad is None else p.grad + 0 for p in params])


@pytest.mark.parametrize("name", LOOPS)
def test_the_graph_is_walked_once(name: str) -> None:
    *params, x = tensors(leafax)
    optimizer = leafax.optim.SGD(params, lr=0.1)

    def turn() -> None:
        optimizer.zero_grad()
        LOOPS[name](leafax, params, x)
        optimizer.step()
        leafax.synchronize()

    assert_walked_at_first_only(turn)


def test_what_is_asked_and_given() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        for turn in range(4):
            h = x @ w.t()
            y = (h + b).tanh()
            z = y @ v.t() if turn < 3 else y * 2
            for create_graph in (False, True):
                log(torch.autograd.grad(y, [w, h], torch.ones_like(y), True, create_graph))
                grads = torch.autograd.grad(
                    (z, y.sum()), (h, w, v, h, b), (z.detach() * turn, None), retain_graph=True,
                    create_graph=create_graph, allow_unused=True,
                )  # fmt: skip
                log([g is None for g in grads], grads[0] is grads[3])
                log([None if g is None else (g.stride(), g.requires_grad) for g in grads])
                log.gradients(*[g for g in grads if g is not None])
            with log.catch():
                torch.autograd.grad(y.sum(), [w, v])
            with log.catch():
                log.gradients(*torch.autograd.grad((z * z).sum(), [b]))
            with log.catch():
                torch.autograd.grad(z.sum(), [b])


def test_writes_to_gradients_stay_with_them() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        kept: list[Any] = []
        for turn in range(4):
            y = net(torch, (w, v, b), x + turn)
            grads = torch.autograd.grad(y.sum(), [w, v, b], create_graph=turn == 2)
            with torch.no_grad():
                grads[0].mul_(3)
                grads[1][0] = 7
                grads[2].add_(grads[2])
            kept += [g.detach() + 0 for g in grads]
            log(*kept[-3:])
        log(kept[:3])


def test_hooks_are_called_at_each_turn() -> None:
    @same
    def program(torch: Any, log: Log) -> None:
        w, v, b, x = tensors(torch)
        for turn in range(6):
            y = net(torch, (w, v, b), x)
            if turn == 2:
                handle = w.register_hook(lambda g: g * 10)
            if turn == 3:
                y.register_hook(lambda g: g * 2)
            if turn == 4:
                handle.remove()
            log.gradients(*[g + 0 for g in torch.autograd.grad(y.sum(), [w, b])])
