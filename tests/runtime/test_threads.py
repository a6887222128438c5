"""Grad mode is a thread's own; leaves and graphs may be shared."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same
from helpers.threads import in_threads

import leafax
from leafax._core import trie


def test_ten_threads_train() -> None:
    def train(k: int) -> Any:
        x = leafax.full((5,), float(k), requires_grad=True)
        for _ in range(5):
            y = (x + 3) * (x + 4) * 0.5
            y.sum().backward()
            with leafax.no_grad():
                x -= 0.1 * x.grad
            x.grad = None
        return x.tolist()

    alone = [train(k) for k in range(10)]
    np.testing.assert_allclose(in_threads(10, train), alone, rtol=1e-6)


def test_grad_mode_is_per_thread() -> None:
    with leafax.no_grad():
        assert in_threads(2, lambda k: leafax.is_grad_enabled()) == [True, True]
        assert not leafax.is_grad_enabled()


def test_a_pending_tensor_is_read_by_others() -> None:
    x = leafax.arange(4.0) * 2
    assert in_threads(3, lambda k: (x + k).tolist()) == [[k, k + 2, k + 4, k + 6] for k in range(3)]
    assert x.tolist() == [0, 2, 4, 6]


def test_a_hook_on_several_tensors_is_called_once_a_backward() -> None:
    a, b = leafax.tensor([1.0], requires_grad=True), leafax.tensor([2.0], requires_grad=True)
    meet, calls = threading.Barrier(5, timeout=60), []

    def hook(grad: Any) -> None:
        calls.append(threading.get_ident())
        meet.wait()  # all five are between their two gradients

    leafax.autograd.graph.register_multi_grad_hook((a, b), hook, mode="any")
    out = (a * b).sum()
    in_threads(5, lambda k: out.backward(retain_graph=True))
    assert len(calls) == len(set(calls)) == 5


def _in_a_thread(torch: Any, before: str, inside: str) -> Any:
    """Return `y`, `v` and `z` after `inside` ran in another thread, and the gradients of `x`."""
    names = {"torch": torch, "x": torch.tensor([1.0, 2.0, 3.0], requires_grad=True)}
    exec(before, names)
    thread = threading.Thread(target=exec, args=(inside, names))
    thread.start()
    thread.join()
    found: list[Any] = []
    for name in "yvz":
        t = names.get(name)
        if t is None:
            continue
        found.append((name, t.tolist(), t._version, t.output_nr, t.requires_grad))
        fn = t.grad_fn
        found.append(fn and (fn.name(), [f and f.name() for f, _ in fn.next_functions]))
    for name in "yvz":
        if names.get(name) is not None and names[name].requires_grad:
            x = names["x"]
            x.grad = None
            names[name].sum().backward(retain_graph=True)
            found.append(None if x.grad is None else x.grad.tolist())
    return found


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("y = x * 2", "y.mul_(2)"),
        ("y = x * 2; v = y[1:]", "y.grad_fn; z = v * 2"),
        ("y = x * 2; v = y[1:]", "y.zero_()"),
        ("y = x * 2; v = y[1:]", "y.detach().mul_(2)"),
        ("y = x * 2; v = y[1:]", "z = v.view(-1); z.mul_(2)"),
        ("y = x * 2; v = y[1:]; y.mul_(3)", "with torch.no_grad(): v.mul_(2)"),
        ("y = x + 1; v = y * 2", "y.detach_()"),
        ("y = x * 2; y.detach().mul_(2)", "y.zero_(); z = y * 2"),
        ("y, v = (x * 3).split([1, 2])", "z = v * 2"),
        ("y = x.detach() * 2; v = y[1:]", "y.requires_grad_(); z = y * v.sum()"),
    ],
)
def test_a_pending_tensor_keeps_its_history_in_another_thread(before: str, inside: str) -> None:
    assert _in_a_thread(leafax, before, inside) == _in_a_thread(torch, before, inside)


@pytest.mark.parametrize("how", ["item", "view", "whole"])
def test_threads_write_to_one_memory(how: str) -> None:
    for _ in range(4):
        x = leafax.zeros(6)

        def write(k: int, x: Any = x) -> None:
            if how == "item":
                x[k] += k + 1
            elif how == "view":
                x[k].add_(k + 1)
            else:
                x.add_(leafax.arange(6) == k)

        in_threads(6, write)
        assert x.tolist() == ([1.0] * 6 if how == "whole" else [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_looking_at_a_tensor_of_another_thread_keeps_its_history() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        x, made = lib.ones(3, requires_grad=True), []
        thread = threading.Thread(target=lambda: made.append((x * 2).sin()))
        thread.start()
        thread.join()
        for _ in range(2):  # it shares its memory, then its array is known
            log(made[0].detach().clone().tolist(), repr(made[0]), made[0].grad_fn.name())
        made[0].sum().backward()
        log(x.grad)


def test_a_collection_while_a_threads_recorder_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    plain = trie.Mode.of

    def collecting(*args: Any, **kwargs: Any) -> Any:
        gc.collect()
        return plain(*args, **kwargs)

    monkeypatch.setattr(trie.Mode, "of", collecting)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(trie.local.trace))
    thread.start()
    thread.join()
    assert found
    assert not raised, raised
