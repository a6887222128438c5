"""PyTorch's `torch.nn.parallel.distributed`: a model in a process group, of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..._core.processes.group import default_group
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Call a module; leafax has process groups of one process, so there is nothing to average.

    Args:
      module: the module.
      args, kwargs: of several processes.

    Raises:
      ValueError: there is no process group.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.process_group = default_group()
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Average no gradients within a block, as outside of it."""
        yield
