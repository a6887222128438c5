"""The process group of `torch.distributed`: leafax knows those of one process."""

from __future__ import annotations

import os
from typing import Any


class ProcessGroup:
    """A group of processes: this one alone.

    Args:
      backend: what programs named when they made it.
    """

    def __init__(self, backend: str = "gloo") -> None:
        self.backend = backend

    def rank(self) -> int:
        """Return the number of this process in the group."""
        return 0

    def size(self) -> int:
        """Count the processes."""
        return 1

    def name(self) -> str:
        """Return the backend's name."""
        return self.backend

    @property
    def group_name(self) -> str:
        """Return the group's name."""
        return "default_pg"


class _World:
    """The default group, None until it is made."""

    default: ProcessGroup | None = None


_world = _World()


def is_initialized() -> bool:
    """Tell whether the default process group has been made."""
    return _world.default is not None


def default_group() -> ProcessGroup:
    """Return the default process group.

    Raises:
      ValueError: it has not been made.
    """
    if _world.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _world.default


def make_default_group(backend: Any, world_size: int, rank: int) -> None:
    """Make the default process group.

    Args:
      backend: its name, None for any.
      world_size: how many processes there are; below 0 as the environment says.
      rank: the number of this one; below 0 as the environment says.

    Raises:
      ValueError: it is there, or the environment says no size or number.
      NotImplementedError: there are several processes.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    size = _given(world_size, "WORLD_SIZE")
    _given(rank, "RANK")
    if size != 1:
        raise NotImplementedError(
            f"leafax has no process group of {size} processes: one process computes so far"
        )
    _world.default = ProcessGroup(str(backend or "gloo").partition(":")[2] or str(backend))


def remove_default_group() -> None:
    """Forget the default process group, which must be there."""
    default_group()
    _world.default = None


def _given(value: int, name: str) -> int:
    if value >= 0:
        return value
    if name not in os.environ:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return int(os.environ[name])
