"""`cond`, `while_loop`, `map` and scans, as functions of functions."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch

import leafax

ours: Any = importlib.import_module("leafax._higher_order_ops")
dense: Any = importlib.import_module("torch._higher_order_ops")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_an_associative_scan_has_all_partial_results(n: int, reverse: bool) -> None:
    def combine(left: Any, right: Any) -> Any:  # as Mamba's states
        return left[0] * right[0], right[0] * left[1] + right[1]

    a, b = np.random.default_rng(n).normal(size=(2, 2, n, 3))
    loop_a, loop_b = a.copy(), b.copy()
    places = range(n - 1, -1, -1) if reverse else range(n)
    for before, now in zip(places, list(places)[1:], strict=False):
        both = (loop_a[:, before], loop_b[:, before]), (a[:, now], b[:, now])
        loop_a[:, now], loop_b[:, now] = combine(*both)
    for mode in ("pointwise", "generic"):
        found = ours.associative_scan(
            combine, (leafax.tensor(a), leafax.tensor(b)), 1, reverse, combine_mode=mode
        )
        np.testing.assert_allclose(found[0].numpy(), loop_a, rtol=1e-12)
        np.testing.assert_allclose(found[1].numpy(), loop_b, rtol=1e-12)


def test_gradients_go_through_an_associative_scan() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2))
    t = torch.tensor(x, requires_grad=True)
    t.cumprod(0).sin().sum().backward()
    s: Any = leafax.tensor(x, requires_grad=True)
    ours.associative_scan(lambda a, b: a * b, s, 0).sin().sum().backward()
    np.testing.assert_allclose(s.grad.numpy(), t.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_carries_a_value_and_keeps_results(reverse: bool) -> None:
    x = np.cos(np.arange(12.0).reshape(4, 3))

    def step(carry: Any, each: Any) -> Any:
        a = carry["h"] * each
        return {"h": a + 1}, (a, each.sum())

    value, kept, sums = np.ones(4), [], []
    for k in (2, 1, 0) if reverse else (0, 1, 2):
        kept.append(value * x[:, k])
        sums.append(x[:, k].sum())
        value = kept[-1] + 1
    order = slice(None, None, -1 if reverse else 1)
    init = {"h": leafax.ones(4, dtype=leafax.float64)}
    carry, found = ours.scan(step, init, leafax.tensor(x), dim=1, reverse=reverse)
    np.testing.assert_allclose(carry["h"].numpy(), value, rtol=1e-12)
    np.testing.assert_allclose(found[0].numpy(), np.stack(kept)[order], rtol=1e-12)
    np.testing.assert_allclose(found[1].numpy(), np.array(sums)[order], rtol=1e-12)


def test_branches_loops_and_maps_are_pythons() -> None:
    x: Any = leafax.arange(6.0).reshape(2, 3).requires_grad_()
    total = ours.cond(x.sum() > 3, lambda x: x.sin(), lambda x: x.cos(), (x,)).sum()
    total = total + ours.map(lambda x, k: (x * k).sum(), x, 2.0).sum()
    last, y = ours.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x))
    (total + y.sum()).backward()
    expected = np.cos(np.arange(6.0).reshape(2, 3)) + 2 + 8
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    assert last == 3


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("cond", ("yes", abs, abs)),
        ("while_loop", (3, abs, (1,))),
        ("associative_scan", (abs, "xs", 0, False, "fast")),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: Any) -> None:
    said = []
    for lib, home in ((leafax, ours), (torch, dense)):
        kinds = {"init": lib.ones(1), "xs": lib.ones(2)}
        given = [kinds.get(a, a) if isinstance(a, str) else a for a in arguments]
        with pytest.raises((RuntimeError, ValueError)) as caught:
            getattr(home, name)(*given)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]
