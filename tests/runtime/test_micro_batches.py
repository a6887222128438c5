"""Gradients of micro-batches summed before a step: numbers, and what is in memory at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.cheap_programs import OPTIMIZED

import leafax
from leafax._core.trie import local
from leafax._runtime import cut
from leafax.functional.execution.numpy import evaluator
from leafax.functional.lowering import lower, micro_batches
from leafax.functional.lowering.micro_batches import turns_of

RNG = np.random.default_rng(0)


def network(t: Any, width: int, depth: int) -> Any:
    layers = [f() for _ in range(depth) for f in (lambda: t.nn.Linear(width, width), t.nn.Tanh)]
    return t.nn.Sequential(*layers).double()


def micro_batches_of(t: Any, net: Any, xs: list[Any], step: Callable[[Any], None]) -> None:
    optimizer = t.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        for x in xs:
            step(x)
        optimizer.step()


def plain(t: Any, net: Any) -> Callable[[Any], None]:
    return lambda x: (net(x) ** 2).mean().backward()


def clipped(t: Any, net: Any) -> Callable[[Any], None]:
    """The second forward pass reads the gradients of the first."""

    def step(x: Any) -> None:
        (net(x) ** 2).mean().backward()
        t.nn.utils.clip_grad_norm_(net.parameters(), 0.1)

    return step


def checkpointed(t: Any, net: Any) -> Callable[[Any], None]:
    """Forward passes follow on backward passes in each micro-batch too."""

    def step(x: Any) -> None:
        for layer in net:
            x = t.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        (x**2).mean().backward()

    return step


def penalized(t: Any, net: Any) -> Callable[[Any], None]:
    """Gradients are differentiated."""

    def step(x: Any) -> None:
        x = x.detach().requires_grad_()
        loss = (net(x) ** 2).mean()
        (grad,) = t.autograd.grad(loss, x, create_graph=True)
        (loss + (grad * x.detach()).norm()).backward()

    return step


def pieces(t: Any, net: Any) -> Callable[[Any], None]:
    """The micro-batches are parts of one tensor, and labels are integers."""

    def step(x: Any) -> None:
        labels = t.arange(x.shape[0])
        t.nn.functional.cross_entropy(net(x), labels % x.shape[1]).backward()

    return step


@pytest.mark.usefixtures("all_recorded")
@pytest.mark.parametrize("kind", [plain, clipped, checkpointed, penalized, pieces])
def test_numbers_are_torchs(kind: Any, monkeypatch: Any) -> None:
    found: list[Any] = []
    monkeypatch.setattr(evaluator, "MOST", -1)  # XLA computes all
    monkeypatch.setattr(micro_batches, "LEAST_BYTES", 0)
    monkeypatch.setattr(lower, "turns_of", lambda *a: found.append(turns_of(*a)) or found[-1])
    data = RNG.normal(size=(3, 5, 4))
    nets = [network(t, 4, 2) for t in (torch, leafax)]
    nets[1].load_state_dict({k: leafax.tensor(v.numpy()) for k, v in nets[0].state_dict().items()})
    for t, net in zip((torch, leafax), nets, strict=True):
        whole = t.tensor(data)
        xs = list(whole.reshape(15, 4).chunk(3)) if kind is pieces else list(whole)
        micro_batches_of(t, net, xs, kind(t, net))
    for mine, wanted in zip(nets[1].parameters(), nets[0].parameters(), strict=True):
        np.testing.assert_allclose(mine.tolist(), wanted.tolist(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mine.grad.tolist(), wanted.grad.tolist(), rtol=1e-9, atol=1e-12)
    assert any(len(turns) >= 2 for turns in found), "each micro-batch waits for the one before"


def temporaries(n: int, least: int, monkeypatch: Any) -> float:
    """Return what n micro-batches in one program need besides, in activations of one layer."""
    monkeypatch.setattr(micro_batches, "LEAST_BYTES", least)
    leafax.manual_seed(0)
    net = network(leafax, 16, 4).float()
    leafax.synchronize()
    x = RNG.normal(size=(n, 1 << 14, 16)).astype("float32")
    for k in range(n):
        (net(leafax.from_numpy(x[k])) ** 2).mean().backward()
    arrays = list(local.trace.arrays)
    leafax.synchronize()
    compiled = cut.plans[-1][1].lowered(arrays).compile(OPTIMIZED)
    return float(compiled.memory_analysis().temp_size_in_bytes / x[0].nbytes)


def test_activations_of_one_micro_batch_are_in_memory(monkeypatch: Any) -> None:
    """XLA computes all forward passes first, had it no reason not to."""
    one = temporaries(1, 0, monkeypatch)
    assert temporaries(3, 1 << 60, monkeypatch) > 2 * one
    assert temporaries(4, 8 << 20, monkeypatch) < 1.4 * one
