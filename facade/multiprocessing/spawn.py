"""PyTorch's `torch.multiprocessing.spawn`: runs a function in several processes."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip


class ProcessException(Exception):
    """An error of one of several processes."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process whose function raised."""


class ProcessExitedException(ProcessException):
    """A process that a signal or an exit status ended."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int,
        signal_name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        given = self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name
        return type(self), given


def _call(fn: Callable[..., Any], index: int, args: Sequence[Any], error_file: str) -> None:
    """Call the function in its process; leave the text of its error in a file."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent has ended the process
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started, to be joined."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {p.sentinel: index for index, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the processes' numbers."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, and tell whether all have; if one failed, end the others.

        Args:
          timeout: seconds to wait at most.
          grace_period: seconds that the others have to end by themselves.

        Raises:
          ProcessException: a process failed.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            self.processes[index].join()
            if self.processes[index].exitcode:
                self._end_all(grace_period)
                raise self._error(index)
        return not self.sentinels

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _error(self, index: int) -> ProcessException:
        process, path = self.processes[index], self.error_files[index]
        if os.access(path, os.R_OK):
            with open(path, "rb") as file:
                said = pickle.load(file)
            text = f"\n\n-- Process {index} terminated with the following error:\n{said}"
            return ProcessRaisedException(text, index, process.pid)
        code, name = process.exitcode, None
        how = f"exit code {code}"
        if code < 0:
            known = -code in {s.value for s in signal.Signals}
            name = signal.Signals(-code).name if known else f"<Unknown signal {-code}>"
            how = f"signal {name}"
        text = f"process {index} terminated with {how}"
        return ProcessExitedException(text, index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """An older name of `ProcessContext`."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call `fn(index, *args)` in several processes.

    Args:
      fn: a function that pickle finds, so of a module.
      args: further arguments.
      nprocs: how many processes.
      join: wait for them.
      daemon: end them with this process.
      start_method: Python's, "spawn", "fork" or "forkserver"; XLA does not survive a fork.

    Returns:
      The processes, None if they were waited for.

    Raises:
      ProcessException: a process failed.
    """
    context: Any = multiprocessing.get_context(start_method)
    folder = tempfile.mkdtemp(prefix="leafax-errors-")
    files = [os.path.join(folder, f"{index}.pickle") for index in range(nprocs)]
    processes = []
    for index, path in enumerate(files):
        process = context.Process(target=_call, args=(fn, index, args, path), daemon=daemon)
        process.start()
        processes.append(process)
    started = ProcessContext(processes, files)
    weakref.finalize(started, shutil.rmtree, folder, ignore_errors=True)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call `fn(index, *args)` in several fresh processes, see `start_processes`."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
