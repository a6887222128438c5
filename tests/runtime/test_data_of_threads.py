"""Data that one thread prepares and another one trains with."""

from __future__ import annotations

import queue
import threading
from typing import Any

import numpy as np
import pytest
import torch

import leafax


def _prepared(lib: Any, turns: int, ahead: int, how: str) -> Any:
    """Yield the batches that a thread prepares, up to `ahead` of them in advance."""
    numbers, batches = np.random.default_rng(0), queue.Queue[Any](ahead)
    arrays = [numbers.normal(size=(8, 4)).astype(np.float32) for _ in range(turns)]

    def prepare() -> None:
        mean, var = lib.zeros(4), lib.ones(4)
        for array in arrays:
            x = lib.from_numpy(array)
            if how == "running":
                mean = 0.9 * mean + 0.1 * x.mean(0)
                var.mul_(0.9).add_(0.1 * x.var(0))
            else:
                mean, var = x.mean(0), x.var(0)
            batches.put((x - mean) / var.sqrt())
        batches.put(None)

    thread = threading.Thread(target=prepare)
    thread.start()
    while (batch := batches.get()) is not None:
        yield batch
    thread.join()


def _losses(lib: Any, turns: int, ahead: int, how: str) -> list[float]:
    w = lib.full((3, 4), 0.1, requires_grad=True)
    optimizer, losses = lib.optim.SGD([w], lr=0.1, momentum=0.9), []
    for x in _prepared(lib, turns, ahead, how):
        loss = lib.nn.functional.linear(x, w).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]


@pytest.mark.parametrize("how", ["alone", "running"])
@pytest.mark.parametrize("ahead", [1, 3, 0])
def test_each_batch_is_computed_once_by_the_same_program(how: str, ahead: int) -> None:
    want = _losses(torch, 40, ahead, how)
    _losses(leafax, 40, ahead, how)
    leafax.explain(clear=True)
    np.testing.assert_allclose(_losses(leafax, 40, ahead, how), want, rtol=1e-4)
    runs = list(leafax.explain(clear=True))
    recorded = 40 if how == "running" else 0  # NumPy computes what is of the data alone
    assert sum(run.reason == "tensor of another thread" for run in runs) == recorded
    assert sum(run.reason == "optimizer.step()" for run in runs) == 40
    assert sum(run.how == "compiled" for run in runs) <= 2  # how far the thread is ahead varies
    assert max(run.nodes for run in runs) < 40


def test_an_index_out_of_range_raises_where_the_tensor_is_used() -> None:
    made = queue.Queue[Any]()
    go = threading.Event()

    def look_up() -> None:
        made.put(leafax.arange(3)[leafax.tensor([1, 5])] * 2)
        go.wait()  # the thread does not run what it recorded

    thread = threading.Thread(target=look_up)
    thread.start()
    x = made.get()
    try:
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            (x + 1).tolist()
    finally:
        go.set()
        thread.join()


@pytest.mark.parametrize("change", ["detach_", "requires_grad_", "off"])
@pytest.mark.parametrize("looked_at", [False, True])
def test_a_flag_that_another_thread_changed_is_seen(looked_at: bool, change: str) -> None:
    """Also in a thread whose program knows the tensor from before."""

    def seen(lib: Any) -> list[Any]:
        x = lib.ones(3, requires_grad=change != "requires_grad_")
        if looked_at:
            x.detach().tolist()
        asked, told = queue.Queue[Any](), queue.Queue[Any]()

        def work() -> None:
            while (fn := asked.get()) is not None:
                told.put(fn())

        def there(fn: Any) -> Any:
            asked.put(fn)
            return told.get()

        thread = threading.Thread(target=work)
        thread.start()
        kept = there(lambda: x * 2), x * 3
        x.requires_grad_(False) if change == "off" else getattr(x, change)()
        found = []
        for y in (there(lambda: x * x), x * x):
            found += [y.requires_grad, kept[0].requires_grad, kept[1].requires_grad]
            if y.requires_grad:
                y.sum().backward()
                found.append(x.grad.tolist())
        asked.put(None)
        thread.join()
        return found

    assert seen(leafax) == seen(torch)


@pytest.mark.parametrize("saved", ["leaf", "result"])
@pytest.mark.parametrize("name", ["mul_", "zero_"])
def test_a_write_of_another_thread_to_what_was_saved_is_refused(name: str, saved: str) -> None:
    def message(lib: Any) -> str:
        x = lib.ones(3, requires_grad=True)
        y = (x * 2).exp_()
        loss = (y * x * x).sum()
        written = x if saved == "leaf" else y

        def write() -> None:
            with lib.no_grad():
                getattr(written, name)(*([2] if name == "mul_" else []))

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as told:
            loss.backward()
        return str(told.value)

    assert message(leafax) == message(torch)
