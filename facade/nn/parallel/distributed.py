"""PyTorch's `torch.nn.parallel.distributed`: several processes, of which leafax has one."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Train a module in several processes.

    leafax has no process groups, so it is refused as PyTorch refuses it without one.

    Raises:
      ValueError: always.
    """

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
