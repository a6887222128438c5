"""PyTorch's `torch.distributed.elastic.multiprocessing.errors`."""

from ...._core.absent.stand_ins import leave as record
from ..._child_failed import ChildFailedError as ChildFailedError

__all__ = ["ChildFailedError", "record"]
