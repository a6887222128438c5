"""Tests of worker processes; `test_workers.py` runs them in a process of their own."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import leafax

# PyTorch's loader forks as well, and what JAX says of that is hidden by ours alone.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
LIBRARIES = (leafax, torch)
DATA = leafax.utils.data
fork = pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork", reason="datasets are defined in functions"
)


LIMIT = 30.0  # seconds that one batch may take: more than a loaded machine needs


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    """Stop a test that waits too long, and fail a test that leaves a process behind."""

    def stop(*args: Any) -> None:
        raise TimeoutError("a test of workers waits without end")

    before = set(multiprocessing.active_children())
    if hasattr(signal, "SIGALRM"):
        old = signal.signal(signal.SIGALRM, stop)
        signal.alarm(int(2 * LIMIT))
    yield
    if set(multiprocessing.active_children()) - before:
        gc.collect()  # an exception and a frame hold each other
    if hasattr(signal, "SIGALRM"):
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    assert not set(multiprocessing.active_children()) - before


def loader_of(dataset: Any, lib: Any = leafax, num_workers: int = 1, **kwargs: Any) -> Any:
    return lib.utils.data.DataLoader(
        dataset, num_workers=num_workers, **{"timeout": LIMIT, **kwargs}
    )


def load(dataset: Any, lib: Any = leafax, num_workers: int = 2, **kwargs: Any) -> Any:
    batches = iter(loader_of(dataset, lib, num_workers, **kwargs))
    try:
        return [b.tolist() if hasattr(b, "tolist") else b for b in batches]
    finally:
        if lib is torch:  # else they wait for the garbage collector, and it for them
            batches._shutdown_workers()


class By:
    """A map dataset by a function."""

    def __init__(self, fn: Any, n: int = 8) -> None:
        self.fn, self.n = fn, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> Any:
        return self.fn(k)


def parts_of(lib: Any) -> Any:
    """Worker 0 has 3 numbers, worker 1 has 5."""

    class Parts(lib.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            info = lib.utils.data.get_worker_info()
            return iter(range(10 * info.id, 12 * info.id + 3))

    return Parts()


@fork
def test_order_and_ends_are_those_of_torch() -> None:
    for options in (
        {"batch_size": 3},
        {"batch_size": None},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": 2, "prefetch_factor": 1},
    ):
        found = [load(By(lambda k: k, 11), lib, **options) for lib in LIBRARIES]
        assert found[0] == found[1]
    found = [load(parts_of(lib), lib, batch_size=2) for lib in LIBRARIES]
    assert found[0] == found[1]
    assert sorted(sum(load(By(lambda k: k), in_order=False, batch_size=2), [])) == list(range(8))


@fork
def test_what_arrives() -> None:
    """Small and large arrays, tensors of all kinds, strings, and numbers; all may be written to."""

    def sample(k: int) -> Any:
        return {
            "large": np.full((60, 60), k, np.float32),
            "tensor": leafax.tensor([k, 0.5]),
            "row": held[k],
            "half": leafax.zeros(2, dtype=leafax.bfloat16),
            "text": f"s{k}",
            "pair": (k, k / 2),
        }

    held = leafax.arange(16.0).reshape(8, 2) + 1  # pending
    loader = loader_of(By(sample), batch_size=4)
    first, second = loader
    assert first["large"].shape == (4, 60, 60) and first["large"].dtype == leafax.float32
    assert second["large"][:, 3, 3].tolist() == [4, 5, 6, 7]
    assert first["tensor"].tolist() == [[k, 0.5] for k in range(4)]
    assert second["row"].tolist() == [[9, 10], [11, 12], [13, 14], [15, 16]]
    assert first["half"].dtype is leafax.bfloat16 and first["half"].sum().item() == 0
    assert first["text"] == ["s0", "s1", "s2", "s3"]
    assert second["pair"][1].tolist() == [2, 2.5, 3, 3.5]
    first["large"] += 1
    first["tensor"][0] = 7
    assert first["large"].sum().item() == 3600 * (1 + 2 + 3 + 4)
    assert first["tensor"][0].tolist() == [7, 7]


@fork
def test_tensors_are_computed_by_numpy() -> None:
    """The numbers of XLA, without it."""
    x = leafax.randn(6, 3, 4)

    def sample(k: int) -> Any:
        return ((x[k] - x[k].mean()) / x[k].std()).flip(0) @ leafax.ones(4, 2)

    (found,) = loader_of(By(sample, 6), batch_size=6)
    expected = leafax.stack([sample(k) for k in range(6)])
    assert np.allclose(found.numpy(), expected.numpy(), atol=1e-5)


@fork
@pytest.mark.parametrize("what", ["leafax", "jax", "jitted"])
def test_what_needs_xla_is_an_error_at_once(what: str) -> None:
    import jax

    jitted = jax.jit(lambda x: x @ x)
    x = jax.numpy.ones((100, 100))
    jitted(x).block_until_ready()
    samples: dict[str, Any] = {
        "leafax": lambda k: leafax.linalg.svd(leafax.eye(3))[1],
        "jax": lambda k: np.asarray(jax.numpy.ones(3) + k),
        "jitted": lambda k: np.asarray(jitted(x)),
    }
    words = "(?s)XLA.*(does not run|Disallowed).*|Disallowed host-to-device transfer"
    with pytest.raises(Exception, match=words):
        load(By(samples[what]), num_workers=1)


@fork
def test_seeds() -> None:
    def drawn(k: int) -> Any:
        return random.random(), float(np.random.rand()), leafax.rand(2), leafax.randn(1)

    def numbers(seed: int) -> Any:
        leafax.manual_seed(seed)
        loader = loader_of(By(drawn, 4), num_workers=2)
        return [[t.tolist() for t in batch] for batch in loader]

    drawn_by_0 = numbers(0)
    assert drawn_by_0 == numbers(0) != numbers(1)
    flat = [str(x) for batch in drawn_by_0 for x in batch]
    assert len(set(flat)) == len(flat)
    info = loader_of(
        By(lambda k: [getattr(DATA.get_worker_info(), n) for n in ("id", "num_workers", "seed")]),
        num_workers=2, batch_size=None,
    )  # fmt: skip
    (a, b, *_) = list(info)
    assert [int(x) for x in (a[0], a[1], b[0], b[1])] == [0, 2, 1, 2]
    assert int(b[2]) == int(a[2]) + 1
    theirs = torch.utils.data._utils.worker._generate_state
    for base, worker in ((12345, 0), (2**62 + 17, 3)):
        assert DATA._utils.worker._generate_state(base, worker) == theirs(base, worker)


@fork
def test_worker_init_fn_and_persistent_workers() -> None:
    def begin(worker: int) -> None:
        dataset = DATA.get_worker_info().dataset
        dataset.n = 100 + worker

    dataset = By(None, 4)
    dataset.fn = lambda k: (DATA.get_worker_info().dataset.n, os.getpid())
    loader = loader_of(
        dataset, num_workers=2, worker_init_fn=begin, persistent_workers=True, batch_size=None
    )
    next(iter(loader))  # and no more
    turns = [list(loader) for _ in range(2)]
    assert [n for n, _ in turns[0]] == [100, 101, 100, 101]
    assert turns[0] == turns[1]
    assert dataset.n == 4
    workers = loader._iterator._workers
    assert all(w.is_alive() for w in workers)
    del loader
    assert [w.exitcode for w in workers] == [0, 0]


class Odd(Exception):
    """An exception that takes two arguments."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def fail(k: int, error: Any) -> int:
    if k == 3:
        raise error
    return k


def words(error: BaseException) -> str:
    """The text of an error without the places in it."""
    text = re.sub(r"(?m)^  File .*\n(    .*\n)*", "", str(error))
    return re.sub(r"_utils\.|\d+ seconds", "", text)


@fork
@pytest.mark.parametrize("error", [ValueError("bad"), KeyError("key"), Odd(1, 2), StopIteration()])
def test_exceptions_come_with_their_traceback(error: Any) -> None:
    texts = []
    for lib in LIBRARIES:
        kind = RuntimeError if isinstance(error, Odd) else type(error)
        with pytest.raises(RuntimeError if kind is StopIteration else kind) as found:
            load(By(lambda k: fail(k, error)), lib, num_workers=1)
            raise RuntimeError("a stop ends the loop in silence")
        texts.append(words(found.value))
    assert texts[0] == texts[1]


@fork
def test_exceptions_at_the_start_and_in_collate_fn_and_in_pickling() -> None:
    def begin(worker: int) -> None:
        raise ValueError("no start")

    with pytest.raises(ValueError, match="(?s)Caught ValueError in DataLoader worker.*no start"):
        load(By(lambda k: k), worker_init_fn=begin)
    with pytest.raises(TypeError, match="(?s)worker process 0.*default_collate: batch must"):
        load(By(lambda k: None), num_workers=1)
    with pytest.raises(Exception, match="(?s)Caught .* in DataLoader worker process 0.*pickle"):
        load(By(lambda k: lambda: k), num_workers=1, collate_fn=lambda batch: batch[0])
    w = leafax.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        load(By(lambda k: w * 2), num_workers=1)


@fork
def test_a_loader_goes_on_after_an_exception() -> None:
    loader = iter(loader_of(By(lambda k: fail(k, ValueError("x")), 6), num_workers=2))
    seen: list[Any] = []
    for _ in range(6):
        try:
            seen.append(next(loader).item())
        except ValueError:
            seen.append("error")
    assert seen == [0, 1, 2, "error", 4, 5]


def end(k: int, how: Any) -> int:
    if k == 2:
        how()
    return k


@fork
@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            r"worker \(pid \d+\) is killed by signal: K",
        ),
        (lambda: os._exit(3), r"worker \(pid \d+\) exited unexpectedly with exit code 3\. Details"),
        (lambda: os._exit(0), r"worker \(pid\(s\) \d+\) exited unexpectedly$"),
    ],
)
def test_a_worker_that_dies_is_an_error(how: Any, said: str) -> None:
    with pytest.raises(RuntimeError, match=f"DataLoader {said}"):
        load(By(lambda k: end(k, how)), timeout=0)


@fork
def test_timeout() -> None:
    def slow(k: int) -> int:
        time.sleep(0.4)
        return k

    for lib in LIBRARIES:
        with pytest.raises(RuntimeError, match="DataLoader timed out after 0.1 seconds"):
            load(By(slow), lib, num_workers=1, timeout=0.1)
    assert load(By(lambda k: k, 2), num_workers=1, timeout=LIMIT) == [[0], [1]]


def descriptors() -> list[int]:
    return [int(fd) for fd in os.listdir("/proc/self/fd")] if os.path.exists("/proc") else []


@fork
@pytest.mark.parametrize("to_the_end", [False, True])
def test_nothing_is_left_of_a_loop(to_the_end: bool) -> None:
    others, before = set(multiprocessing.active_children()), len(descriptors())
    batches = iter(loader_of(By(lambda k: np.full(9000, k)), num_workers=2))
    workers = batches._workers
    batch = next(batches)
    if to_the_end:
        assert [int(batch.numpy()[0, 0]) for batch in batches] == list(range(1, 8))
        assert set(multiprocessing.active_children()) == others
    del batches
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert set(multiprocessing.active_children()) == others
    assert batch.shape == (1, 9000)
    del workers  # each has pipes
    assert len(descriptors()) <= before


@fork
def test_workers_end_though_younger_ones_live() -> None:
    """A process that is forked later has what its parent had, also the ends of older workers."""
    turns = [iter(loader_of(By(lambda k: k))) for _ in range(2)]
    younger = multiprocessing.get_context("fork").Process(target=time.sleep, args=(LIMIT,))
    younger.start()
    assert [next(turn).tolist() for turn in turns] == [[0], [0]]
    workers = [worker for turn in turns for worker in turn._workers]
    del turns
    assert [worker.exitcode for worker in workers] == [0, 0]
    younger.kill()
    younger.join()


@fork
def test_batches_are_kept_in_any_number() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    batches = iter(loader_of(By(lambda k: np.full(9000, k), 40)))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors() or [100]) + 10, hard))
    try:
        kept = list(batches)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [int(batch.sum()) for batch in kept] == [9000 * k for k in range(40)]


@fork
def test_many_and_large_messages_do_not_wait_for_each_other() -> None:
    """More of them than sockets hold, in both directions, before the first batch is asked for."""
    keys = [[k] * 20_000 for k in range(6)]
    loader = loader_of(
        By(lambda k: k), batch_sampler=keys, num_workers=1, prefetch_factor=6,
        collate_fn=lambda batch: ["x" * 100] * 3000,
    )  # fmt: skip
    assert [len(batch) for batch in loader] == [3000] * 6
    many = loader_of(By(lambda k: k, 3000), num_workers=1, prefetch_factor=3000)
    assert sum(batch.item() for batch in many) == 2999 * 1500
