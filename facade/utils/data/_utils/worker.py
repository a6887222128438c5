"""Loop of a worker process, which fetches the batches that it is asked for, by NumPy alone."""

from __future__ import annotations

import gc
import random
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.confined import confine

from ...._core.locks import sharing
from ...._core.trie import Trace, local
from ...._ops.creation.generator import Generator, manual_seed
from ._channel import Channel, ready
from ._failures import ExceptionWrapper

CONFINED = (
    "in a worker process of a DataLoader. Do it by NumPy in the dataset, or on whole batches in "
    "the main process, or set num_workers=0"
)


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Tell which worker this process is.

    Attributes:
      id: from 0 on.
      num_workers: how many there are.
      seed: of this worker's random numbers.
      dataset: this worker's copy.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Says that a worker's copy of an iterable dataset has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Asks a worker to begin its dataset anew, and is its answer."""

    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _RNG:
    random_generator: random.Random
    torch_generator: Generator
    numpy_generator: object | None = None


class Confinement:
    """Confines the process where it is unpickled: of a spawned one before its dataset is."""

    def __reduce__(self) -> Any:
        return _confined, ()


def _confined() -> Confinement:
    confine(CONFINED)
    return Confinement()


@dataclass(frozen=True)
class Task:
    """Arguments that a worker is started with."""

    confinement: Confinement  # first: fields are unpickled in order
    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Any
    id: int
    num_workers: int


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Tell a worker process which one it is; None in the main process.

    >>> import leafax
    >>> leafax.utils.data.get_worker_info() is None
    True
    """
    return _worker_info


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return the seed of NumPy's numbers in a worker, which differs from that of `random`."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in np.random.SeedSequence(entropy).generate_state(4)]


def _begin(forked: bool, client: Any) -> None:
    """Make this process compute by NumPy alone, with nothing pending that its parent recorded."""
    confine(CONFINED)
    if not forked:
        return
    gc.freeze()  # what the parent made stays as it is, on pages that are shared
    while sharing._is_owned():  # type: ignore[attr-defined] # by the thread that forked
        sharing.release()
    local.trace = Trace(local.root(local.mode))
    local.faults.clear()
    _refuse_jax(client)


def _refuse_jax(client: Any) -> None:
    """Make the user's own calls of JAX fail instead of waiting for threads that are not there."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"XLA does not run {CONFINED}")

    for name in ("compile", "compile_and_load", "deserialize_executable"):
        with suppress(Exception):  # whatever they are called in this version
            setattr(type(client), name, refuse)
    jax.clear_caches()
    jax.config.update("jax_enable_compilation_cache", False)
    jax.config.update("jax_transfer_guard", "disallow_explicit")


def _seed(base_seed: int, worker_id: int) -> int:
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    return seed


def _worker_loop(
    task: Task,
    sock: socket.socket,
    forked: bool,
    client: Any,
    create_fetcher: Any,
) -> None:
    """Fetch what is asked for until the other end closes."""
    global _worker_info
    try:
        _begin(forked, client)
        where = f"in DataLoader worker process {task.id}"
        seed = _seed(task.base_seed, task.id)
        _worker_info = WorkerInfo(task.id, task.num_workers, seed, task.dataset)
        made = task.dataset_kind, task.dataset, task.auto_collation, task.collate_fn, task.drop_last
        failed: Any = None
        fetcher: Any = None
        try:
            if task.init_fn is not None:
                task.init_fn(task.id)
            fetcher = create_fetcher(*made)
        except Exception:
            failed = ExceptionWrapper(where=where)
        ended = False
        channel = Channel(sock)
        while True:
            ask = _asked(channel)
            if isinstance(ask, _ResumeIteration):
                channel.send((ask, None))
                ended, failed = False, None
                try:
                    fetcher = create_fetcher(*made)
                except Exception:
                    failed = ExceptionWrapper(where=where)
                continue
            index, keys = ask
            if ended:
                continue
            data: Any
            if failed is not None:
                data, failed = failed, None
            else:
                try:
                    data = fetcher.fetch(keys)
                except Exception as error:
                    ended = isinstance(error, StopIteration) and task.dataset_kind == 1
                    if ended:
                        data = _IterableDatasetStopIteration(task.id)
                    else:
                        data = ExceptionWrapper(where=where)
            _answer(channel, index, data, where)
            del data, keys, ask
    except (KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the main process raises it as well, or wants no more
    finally:
        sock.close()


def _asked(channel: Channel) -> Any:
    """Wait for what the main process asks for, once it has all that was sent."""
    while channel.has_left:
        ready([channel], reads=False)
        channel.flush()
    while (found := channel.read()) is None:
        ready([channel])
    return found[0]


def _answer(channel: Channel, index: int, data: Any, where: str) -> None:
    try:
        channel.send((index, data), shared=True)
    except OSError:
        raise
    except Exception:  # it cannot be pickled
        failure = ExceptionWrapper(where=where)
        if isinstance(data, ExceptionWrapper):
            failure = data
            failure.exc_type = RuntimeError
        channel.send((index, failure))
