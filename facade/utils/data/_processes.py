"""One turn over a `DataLoader` whose batches worker processes fetch.

Each worker has a pair of sockets of its own with the main process: no lock and no queue is shared,
so a worker that is killed can leave nothing locked, and its death is read as the end of its socket.
No thread is needed either. Batches come in the order of the keys, from the workers in turn.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import socket
import time
import warnings
from contextlib import suppress
from pickle import PicklingError
from typing import Any

import jax

from ..._core.locks import sharing
from . import _utils
from ._iterators import _BaseDataLoaderIter
from ._kinds import _DatasetKind
from ._utils._channel import Channel, ready
from ._utils._failures import ExceptionWrapper
from ._utils.signal_handling import complaint
from ._utils.worker import (
    Confinement,
    Task,
    _IterableDatasetStopIteration,
    _ResumeIteration,
    _worker_loop,
)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has several batches fetched at once.

    A task has a number. Of those that were sent `_task_info` has the worker, and the data if it
    came before its turn.
    """

    _workers: tuple[Any, ...] | list[Any] = ()
    _channels: tuple[Channel, ...] | list[Channel] = ()
    _shutdown = False

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError(
                "num_workers must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        if self._prefetch_factor <= 0:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        self._worker_init_fn = loader.worker_init_fn
        self._pid = os.getpid()
        self._workers, self._channels = [], []
        context = loader.multiprocessing_context or multiprocessing.get_context()
        forks = context.get_start_method() == "fork"
        client = jax.devices()[0].client if forks else None
        try:
            for i in range(self._num_workers):
                self._start(context, forks, client, i)
        except BaseException:
            self._workers_status = [True] * len(self._workers)
            self._shutdown_workers()
            raise
        self._reset(loader, first_iter=True)

    def _start(self, context: Any, forks: bool, client: Any, i: int) -> None:
        """Start worker `i`."""
        task = Task(
            Confinement(), self._dataset_kind, self._dataset, self._auto_collation,
            self._collate_fn, self._drop_last, self._base_seed, self._worker_init_fn, i,
            self._num_workers,
        )  # fmt: skip
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        args = (task, theirs, forks, client, _DatasetKind.create_fetcher)
        worker = context.Process(target=_worker_loop, args=args, daemon=True)
        try:
            if forks:
                _fork(worker)
            else:
                worker.start()
        except (TypeError, AttributeError, PicklingError):
            channel.close()
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. "
                "This might be because the worker Process arguments are not picklable. "
                "Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms "
                "to 'forkserver', which requires the worker Process arguments to be picklable. "
                "You can also try multiprocessing.set_start_method('fork').",
                stacklevel=2,
            )
            raise
        finally:
            theirs.close()
        self._workers.append(worker)  # type: ignore[union-attr]
        self._channels.append(channel)  # type: ignore[union-attr]

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = self._rcvd_idx = self._tasks_outstanding = 0
        self._task_info: dict[int, tuple[Any, ...]] = {}
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            for i in range(self._num_workers):
                self._send(i, _ResumeIteration())
            left = self._num_workers
            while left:  # what comes before the answers is of the turn before
                left -= isinstance(self._get_data()[0], _ResumeIteration)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _send(self, i: int, message: Any) -> None:
        try:
            self._channels[i].send(message)
        except OSError:
            self._fail(i)

    def _fail(self, i: int) -> None:
        """Raise why worker `i` is no more."""
        self._workers[i].join(1)
        self._workers_status[i] = False
        text = complaint(self._workers[i])
        self._shutdown_workers()
        raise RuntimeError(text)

    def _poll(self) -> Any:
        """Something that a worker sent; None if there is nothing yet."""
        for i, channel in enumerate(self._channels):
            if channel.fileno() < 0:
                continue
            try:
                channel.flush()
                found = channel.read()
            except (EOFError, OSError):
                self._fail(i)
            else:
                if found is not None:
                    return found
        return None

    def _get_data(self) -> Any:
        """Wait for something that a worker sends."""
        end = time.monotonic() + self._timeout if self._timeout > 0 else None
        left = None
        while (found := self._poll()) is None:
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            ready([c for c in self._channels if c.fileno() >= 0], left)
        return found[0]

    def _next_data(self) -> Any:
        while True:
            self._skip_ended()
            if self._rcvd_idx == self._send_idx:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            here = self._task_info[self._rcvd_idx]
            if len(here) == 2:
                worker_id, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data, worker_id)
            if self._shutdown or self._tasks_outstanding <= 0:
                raise AssertionError(
                    "Invalid iterator state: shutdown or no outstanding tasks when fetching next "
                    "data"
                )
            index, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                self._workers_status[data.worker_id] = False
                if not self._persistent_workers:
                    self._channels[data.worker_id].close()  # it ends
                self._try_put_index()
            elif index != self._rcvd_idx and self._in_order:
                self._task_info[index] += (data,)
            else:
                worker_id = self._task_info.pop(index)[0]
                self._rcvd_idx += index == self._rcvd_idx
                return self._process_data(data, worker_id)

    def _skip_ended(self) -> None:
        """Go past tasks that were answered out of turn, or that a worker has no data for."""
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info is not None:
                if len(info) == 2 or self._workers_status[info[0]]:
                    return
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1

    def _try_put_index(self) -> None:
        """Send the next keys to the next worker, if there are more of both."""
        most = self._prefetch_factor * self._num_workers
        if self._tasks_outstanding >= most:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            keys = self._next_index()
        except StopIteration:
            return
        for i in itertools.islice(self._worker_queue_idx_cycle, self._num_workers):
            if not self._workers_status[i]:
                continue
            if self._in_order or self._workers_num_tasks[i] < most // sum(self._workers_status):
                break
        else:
            return
        self._task_info[self._send_idx] = (i,)
        self._workers_num_tasks[i] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1
        self._send(i, (self._send_idx - 1, keys))

    def _process_data(self, data: Any, worker_id: int) -> Any:
        self._workers_num_tasks[worker_id] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return self._pinned(data)

    def _shutdown_workers(self) -> None:
        """End the workers, which finish the sample that they are at."""
        if self._shutdown or os.getpid() != self._pid:
            return
        self._shutdown = True
        for channel in self._channels:
            channel.close()
        end = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
        for worker in self._workers:
            worker.join(max(0, end - time.monotonic()))
        for worker in self._workers:
            for stop in (worker.terminate, worker.kill):
                if worker.is_alive():
                    stop()
                    worker.join(_utils.MP_STATUS_CHECK_INTERVAL)

    def __del__(self) -> None:
        with suppress(TypeError, AttributeError):  # of modules that are gone already
            if _utils.python_exit_status:  # which ends the workers
                for channel in self._channels:
                    channel.close()
            elif hasattr(self, "_pid"):
                self._shutdown_workers()


def _fork(worker: Any) -> None:
    """Start a process as a copy of this one.

    JAX and Python warn that its threads are not copied: a worker uses none of them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        warnings.filterwarnings("ignore", r".*use of fork\(\) may lead", DeprecationWarning)
        with sharing:  # so that no other thread is changing what is copied
            worker.start()
