"""PyTorch's `torch.multiprocessing`: Python's own; tensors are pickled, which copies them."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from . import reductions as reductions
from . import spawn as _spawn
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessException as ProcessException
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import start_processes as start_processes

spawn = _spawn.spawn  # PyTorch's name is the function's, not the module's

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]

_strategies = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember how tensors should be shared; they are copied."""
    global _strategy
    if new_strategy not in _strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_strategies}"
        )
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """Return what `set_sharing_strategy` was told."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """Return the strategies that `set_sharing_strategy` takes."""
    return _strategies
