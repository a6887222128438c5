"""Grad mode is a thread's own; leaves and graphs may be shared."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import leafax


def in_threads(n: int, fn: Any) -> list[Any]:
    results: list[Any] = [None] * n
    errors: list[BaseException] = []

    def work(k: int) -> None:
        try:
            results[k] = fn(k)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    return results


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
