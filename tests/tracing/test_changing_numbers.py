"""Numbers that differ from turn to turn: they become inputs of the program, and nothing may keep an
old one: no gradient that is remembered, no attribute of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from helpers.sameness import Log, same

import leafax
from leafax._dispatch import record

TURNS = (0, 1, 2, 1, 0, 2)
OPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "select": lambda lib, b, k: b[0, k],
    "slice": lambda lib, b, k: b[:, k : k + 1],
    "narrow": lambda lib, b, k: b.narrow(1, k, 1),
    "roll": lambda lib, b, k: b.roll(k, 1),
    "add": lambda lib, b, k: lib.add(b, b, alpha=k + 0.5),
    "sub": lambda lib, b, k: lib.sub(b * b, b, alpha=k + 0.5),
    "rsub": lambda lib, b, k: (k + 0.5) - b,
    "mul": lambda lib, b, k: b * (k + 0.5),
    "div": lambda lib, b, k: b / (k + 0.5),
    "divided": lambda lib, b, k: (k + 0.5) / b,
    "pow": lambda lib, b, k: (b * b) ** (k + 0.5),
    "rpow": lambda lib, b, k: (k + 1.5) ** b,
    "float_power": lambda lib, b, k: (b * b).float_power(k + 0.5),
    "xlogy": lambda lib, b, k: lib.xlogy(k + 1.5, b * b),
    "lerp": lambda lib, b, k: lib.lerp(b, b * 2, 0.1 * k + 0.1),
    "addcmul": lambda lib, b, k: lib.addcmul(b, b, b, value=k + 0.5),
    "addcdiv": lambda lib, b, k: lib.addcdiv(b, b, b * b, value=k + 0.5),
    "addmm": lambda lib, b, k: lib.addmm(b, b, b.t() @ b, beta=k + 0.5, alpha=k + 1.5),
    "clamp": lambda lib, b, k: b.clamp(-k - 0.5, k + 0.5),
    "leaky_relu": lambda lib, b, k: lib.nn.functional.leaky_relu(b, 0.1 * k + 0.1),
    "elu": lambda lib, b, k: lib.nn.functional.elu(b, k + 0.5),
    "celu": lambda lib, b, k: lib.nn.functional.celu(b, k + 0.5),
    "softplus": lambda lib, b, k: lib.nn.functional.softplus(b, k + 0.5),
    "threshold": lambda lib, b, k: lib.nn.functional.threshold(b, k * 0.5, 0.1),
    "hardtanh": lambda lib, b, k: lib.nn.functional.hardtanh(b, -k - 0.1, k + 0.1),
    "huber_loss": lambda lib, b, k: lib.nn.functional.huber_loss(b, b * 0, delta=k + 0.5),
    "masked_fill": lambda lib, b, k: b.masked_fill(b > 0, k + 0.5),
    "remainder": lambda lib, b, k: b.remainder(k + 0.5),
    "norm": lambda lib, b, k: b.norm(k + 1.5),
}


def start(lib: Any) -> Any:
    rows = [[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]]
    return lib.tensor(rows, dtype=lib.float64, requires_grad=True)


def saved(node: Any) -> list[Any]:
    """The numbers that a node saved; what it saved of tensors is gone, or differs by a view."""
    found = []
    for name in sorted(n for n in dir(node) if n.startswith("_saved_")):
        try:
            value = getattr(node, name)
        except RuntimeError as e:
            value = str(e)
        if isinstance(value, (int, float, str)):
            found.append((name, value))
    return found


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", OPS)
def test_gradients_are_of_this_turns_number(name: str) -> None:
    op = OPS[name]

    @same
    def program(lib: Any, see: Log) -> None:
        for k in TURNS:
            b = start(lib)
            (g,) = lib.autograd.grad(op(lib, b, k).sum(), b)
            (h,) = lib.autograd.grad(op(lib, b, k).square().sum(), b, create_graph=True)
            h.square().sum().backward()
            see.gradients(g, h, b.grad)


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", OPS)
def test_a_graph_knows_its_number_after_a_look_and_after_it_was_freed(name: str) -> None:
    op = OPS[name]
    for k in TURNS:

        @same
        def program(lib: Any, see: Log, k: int = k) -> None:
            b = start(lib)
            x = op(lib, b, k)
            see(saved(x.grad_fn))
            x.tolist()
            (g,) = lib.autograd.grad(x.sum(), b, retain_graph=True)
            (h,) = lib.autograd.grad(x.sum(), b, create_graph=True)
            see.gradients(g, h)
            see(saved(x.grad_fn))
            x.sum().backward()
            see.gradients(b.grad)
            see(saved(x.grad_fn))
            x.tolist()
            see(saved(x.grad_fn))
            with see.catch():
                x.sum().backward()
            see.gradients(b.grad)


@pytest.mark.parametrize("write", [False, True])
def test_steps_are_found_by_the_types_of_numbers(write: bool) -> None:
    """Neither numbers that were met before nor new ones are looked at as new calls."""
    b = start(leafax).detach().clone()  # `clone`: what is computed at once records nothing
    w = start(leafax)

    def step(k: int, x: float) -> list[float]:
        y = b + w
        if write:
            y[0, k] = x
        else:
            y = y[:, k] * x
        return y.flatten().tolist()  # type: ignore[no-any-return]

    for k, x in ((0, 0.5), (1, 0.25), (2, 0.75), (1, 0.125)):
        step(k, x)
    with mock.patch.object(record, "miss") as missed:
        found = step(2, 3.0)
    assert not missed.called
    expected = start(torch).detach() * 2
    if write:
        expected[0, 2] = 3.0
    else:
        expected = expected[:, 2] * 3.0
    assert found == expected.flatten().tolist()
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension . with size 3"):
        step(3, 1.0)
