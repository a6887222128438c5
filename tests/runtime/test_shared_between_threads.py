"""Threads that use the same tensors at the same time, switched as often as Python can."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.sameness import Log, same
from helpers.threads import in_threads

import leafax
from leafax._runtime.recomputation import compute_elsewhere
from leafax.autograd.graph import saved_tensors_hooks
from leafax.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _item(x: Any, k: int) -> None:
    x[k] += k + 1


def _view(x: Any, k: int) -> None:
    x[k].add_(k + 1)


def _mask(x: Any, k: int) -> None:
    m = leafax.arange(6) == k
    x[m] = k
    x.masked_fill_(m, k + 1)


def _detached(x: Any, k: int) -> None:
    d = x.detach() if k % 2 else x.data
    d[k] = (k + 1) / 2
    d[k].mul_(2)


def _looking(x: Any, k: int) -> None:
    part = x[k : k + 1]
    for _ in range(k + 1):
        part += 1
        if k % 2:
            x.sum().item()
    part.tolist()


@pytest.mark.quick(3)
@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize("write", [_item, _view, _mask, _detached, _looking])
def test_each_writes_its_part_of_one_memory(write: Any, looked_at: bool) -> None:
    for _ in range(20):
        x = leafax.zeros(6)
        if looked_at:
            x.tolist()
        in_threads(6, lambda k, x=x: write(x, k))
        assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_all_write_to_the_whole() -> None:
    for _ in range(20):
        x = leafax.zeros(6)
        in_threads(6, lambda k, x=x: x.add_(leafax.arange(6) == k))
        assert x.tolist() == [1.0] * 6


@pytest.mark.parametrize("looked_at", [False, True])
def test_all_read_one_tensor(looked_at: bool) -> None:
    for _ in range(10):
        x = leafax.arange(6.0) * 2
        if looked_at:
            x.tolist()

        def read(k: int, x: Any = x) -> float:
            return sum(
                float((x * k).sum()) + float(x[k]) + float(x.view(2, 3)[1].sum()) for _ in range(3)
            )

        assert in_threads(6, read) == [3 * (30 * k + 2 * k + 24) for k in range(6)]


@pytest.mark.parametrize("scale", [None, 2.0])
def test_gradients_through_one_tensor(scale: float | None) -> None:
    for _ in range(10):
        w = leafax.ones(3, requires_grad=True)
        h = w if scale is None else w * scale

        def gradient(k: int, h: Any = h) -> Any:
            return leafax.autograd.grad((h * h * k).sum(), h, retain_graph=True)[0].tolist()

        assert in_threads(6, gradient) == [[2 * k * (scale or 1.0)] * 3 for k in range(6)]


def test_gradients_add_up_in_one_leaf() -> None:
    for _ in range(10):
        w = leafax.ones(3, requires_grad=True)

        def train(k: int, w: Any = w) -> None:
            for _ in range(3):
                (w * w * k).sum().backward()

        in_threads(6, train)
        assert w.grad is not None
        assert w.grad.tolist() == [2 * 3 * 15.0] * 3


@pytest.mark.parametrize("trains", [False, True])
def test_gradients_add_up_in_one_leaf_over_many_steps(trains: bool) -> None:
    """A remembered backward pass holds no gradient of another thread."""
    for _ in range(3):
        shared = leafax.ones(5, requires_grad=True)

        def train(k: int, shared: Any = shared) -> list[float]:
            own = leafax.full((5,), k + 1.0, requires_grad=True)
            optimizer = leafax.optim.SGD([own], lr=0.5, momentum=0.5)
            for _ in range(20):
                loss = (shared * shared).sum() * (k + 1.0) + own.sum()
                loss.backward()
                if trains:
                    optimizer.step()
                    optimizer.zero_grad()
                loss.item()
            return own.tolist()

        in_threads(6, train)
        assert shared.grad is not None
        assert shared.grad.tolist() == [2.0 * 20 * 21] * 5


def test_a_tensor_that_another_thread_left_in_shared_memory_meanwhile() -> None:
    """It was pending there when it was asked for, and is read from its memory once it is not."""
    x = leafax.ones(3) * 2
    x[:2].add_(1)
    leafax.synchronize()
    assert compute_elsewhere(x) is None
    assert x.tolist() == [3.0, 3.0, 2.0]


def test_steps_in_turns_of_several_threads() -> None:
    """Each thread steps with parameters that the others have, while they read them."""

    @same
    def program(t: Any, log: Log) -> None:
        w, lock = t.ones(4, dtype=t.float64, requires_grad=True), threading.Lock()
        optimizer = t.optim.Adam([w], lr=0.1)

        def train(k: int) -> None:
            for _ in range(10):
                with lock:
                    optimizer.zero_grad()
                    ((w - 3.0) ** 2).sum().backward()
                    optimizer.step()
                with t.no_grad():
                    (w * 2).sum().item()

        in_threads(4, train)
        log(w.detach(), w._version)


def test_views_handed_over_while_more_are_made() -> None:
    handed: queue.Queue[Any] = queue.Queue()
    got = []

    def work(k: int) -> None:
        for i in range(5):
            if k == 0:
                t = leafax.ones(3) * i
                v = t[1:]
                t.add_(1)
                handed.put((t, v))
            else:
                t, v = handed.get()
                v.add_(10)
                got.append(t.tolist())

    in_threads(2, work)
    assert got == [[i + 1.0, i + 11.0, i + 11.0] for i in range(5)]


def _in_a_thread(fn: Any) -> None:
    thread = threading.Thread(target=fn)
    thread.start()
    thread.join()


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("at_rest", [False, True])
def test_a_write_of_another_thread_is_seen_in_a_program_that_goes_on(
    at_rest: bool, looks: bool
) -> None:
    x = leafax.zeros(3)
    if at_rest:
        x.tolist()
    y = x * 2

    def write() -> None:
        x.add_(1)
        if looks:  # it leaves the other thread's program as an array again
            x.tolist()

    _in_a_thread(write)
    z = x * 2
    assert (y.tolist(), z.tolist()) == ([0.0] * 3, [2.0] * 3)


def test_what_another_thread_computes_for_long_is_waited_for() -> None:
    def slow(a: Any) -> Any:  # traced while the program is compiled
        time.sleep(1.5)
        return a + 1

    x = leafax.call_jax(slow, leafax.zeros(2))  # asks for its shape, slowly
    running, seen = threading.Event(), []

    def reader() -> None:
        running.wait()
        time.sleep(0.2)
        seen.append((x * 2).tolist())

    thread = threading.Thread(target=reader)
    thread.start()
    running.set()
    assert x.tolist() == [1.0, 1.0]
    thread.join()
    assert seen == [[2.0, 2.0]]


@pytest.mark.parametrize("looked_at", [False, True])
def test_gradients_through_one_checkpointed_call(looked_at: bool) -> None:
    for _ in range(10):
        w = leafax.ones(3, requires_grad=True)
        out = checkpoint(lambda x: (x * x).exp().sin(), w * 2, use_reentrant=False)
        if looked_at:
            out.tolist()

        def gradient(k: int, out: Any = out, w: Any = w) -> Any:
            return leafax.autograd.grad((out * k).sum(), w, retain_graph=True)[0]

        gradients = in_threads(4, gradient)
        for k in range(4):
            assert leafax.allclose(gradients[k], gradients[1] * k)


def test_retained_gradients_add_up() -> None:
    for _ in range(10):
        w = leafax.ones(3, requires_grad=True)
        h = w * 2
        h.retain_grad()
        in_threads(4, lambda k, h=h: (h * k).sum().backward(retain_graph=True))
        assert h.grad is not None
        assert h.grad.tolist() == [6.0] * 3


def test_parts_are_set_to_what_requires_grad() -> None:
    for _ in range(10):
        w, h = leafax.ones(4, requires_grad=True), leafax.zeros(4)

        def put(k: int, w: Any = w, h: Any = h) -> None:
            h[k] = w[k] * (k + 1)

        in_threads(4, put)
        h.sum().backward()
        assert w.grad is not None
        assert w.grad.tolist() == h.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_pack_hooks_that_share_a_lock() -> None:
    lock = threading.Lock()
    w = leafax.ones(4, requires_grad=True)

    def pack(x: Any) -> Any:
        with lock:
            return x.detach().clone().numpy()

    def train(k: int) -> Any:
        for _ in range(3):
            with saved_tensors_hooks(pack, leafax.from_numpy):
                y = w * 2
                y = y.exp_() if k % 2 else y.exp()
                y[1:].mul_(leafax.full((3,), 3.0))
            (gradient,) = leafax.autograd.grad(y.sum(), w)
        return (gradient / gradient[0]).round().tolist()

    assert in_threads(4, train) == [[1.0, 3.0, 3.0, 3.0]] * 4


def test_data_is_set_by_several_threads() -> None:
    for _ in range(10):
        w, made = leafax.zeros(4), [leafax.ones(4), leafax.ones(4) * 2]

        def put(k: int, w: Any = w, made: Any = made) -> None:
            for i in range(6):
                w.data = made[(i + k) % 2]
                assert w.tolist() in ([1.0] * 4, [2.0] * 4)

        in_threads(3, put)


@pytest.mark.parametrize("cut", ["never", "before", "after"])
@pytest.mark.parametrize("writer", ["write", "write to a part", "read"])
def test_a_write_to_what_was_saved_where_another_thread_has_it(writer: str, cut: str) -> None:
    w = leafax.ones(4, requires_grad=True)
    h = w * 1
    y = h * h
    if cut == "before":
        y.tolist()
    writes = {
        "write": lambda: h.add_(1),
        "write to a part": lambda: h[:2].add_(1),
        "read": lambda: h.sum().item(),
    }
    _in_a_thread(writes[writer])
    if writer == "read":
        y.sum().backward(retain_graph=True)
        h.add_(1)
    if cut == "after":
        y.tolist()
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0 instead"):
        y.sum().backward()


def test_no_lock_is_held_while_a_function_of_jax_is_traced() -> None:
    asked: queue.Queue[bool] = queue.Queue()
    answered: queue.Queue[bool] = queue.Queue()

    def fn(a: Any) -> Any:  # called to learn its shape, what its gradient reads, and to compile
        asked.put(True)
        assert answered.get(timeout=5)
        return a * a

    def write() -> None:
        x = leafax.zeros(3)
        while asked.get():
            x[:2].add_(1)
            answered.put(True)

    thread = threading.Thread(target=write)
    thread.start()
    w = leafax.ones(3, requires_grad=True)
    try:
        assert (leafax.call_jax(fn, w * 2) * 3).tolist() == [12.0] * 3
    finally:
        asked.put(False)
        thread.join()


def test_who_comes_through_a_graph_without_an_error_has_left_its_gradient() -> None:
    for _ in range(150):
        w = leafax.ones(3, requires_grad=True)
        y = (w * w).exp().sum()

        def train(k: int, y: Any = y) -> int:
            try:
                y.backward()
            except RuntimeError as e:
                assert "a second time" in str(e)
                return 0
            return 1

        through = sum(in_threads(4, train))
        assert w.grad is not None
        assert leafax.allclose(w.grad, leafax.full((3,), 2 * 2.7182818 * through))
