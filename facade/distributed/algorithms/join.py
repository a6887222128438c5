"""PyTorch's `torch.distributed.algorithms.join`: classes to subclass, of one process."""

from __future__ import annotations

from typing import Any

from ..._core.absent.stand_ins import Block, do_nothing

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """Functions that a process calls while it waits for others."""

    main_hook = post_hook = do_nothing


class Joinable:
    """A module or optimizer that processes share."""


class Join(Block):
    """Wait within a block for other processes: there are none."""

    def __init__(self, joinables: Any, enable: bool = True, **kwargs: Any) -> None:
        self.joinables = joinables

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Tell nobody."""
