"""The error of a process that the launcher started."""

from __future__ import annotations


class ChildFailedError(Exception):
    """A process that the launcher started failed.

    Args:
      rank: its number among all.
      pid: the operating system's.
      code: how it ended; below 0 the signal that ended it.
    """

    def __init__(self, rank: int, pid: int, code: int) -> None:
        super().__init__(
            f"process {rank} (pid {pid}) failed with exit code {code}; the others were ended"
        )
        self.rank, self.pid, self.code = rank, pid, code
