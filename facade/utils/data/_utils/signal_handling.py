"""Messages about workers that ended, in PyTorch's words."""

from __future__ import annotations

import signal
from typing import Any


def complaint(worker: Any) -> str:
    """Return the error of a worker process that ended before its time."""
    code = worker.exitcode
    if code is None or code == 0:
        return f"DataLoader worker (pid(s) {worker.pid}) exited unexpectedly"
    if code > 0:
        return (
            f"DataLoader worker (pid {worker.pid}) exited unexpectedly with exit code {code}. "
            "Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better "
            "error trace."
        )
    text = signal.strsignal(-code) or str(-code)
    said = f"DataLoader worker (pid {worker.pid}) is killed by signal: {text}. "
    if -code == getattr(signal, "SIGBUS", None):
        said += (
            "It is possible that dataloader's workers are out of shared memory. Please try to "
            "raise your shared memory limit."
        )
    return said
