"""PyTorch's `torch.nn.parallel`."""

import warnings as _warnings
from typing import Any as _Any

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .distributed import DistributedDataParallel as DistributedDataParallel
from .parallel_apply import parallel_apply as parallel_apply
from .replicate import replicate as replicate
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter

__all__ = [
    "replicate", "scatter", "parallel_apply", "gather", "data_parallel", "DataParallel",
    "DistributedDataParallel",
]  # fmt: skip


class DistributedDataParallelCPU(DistributedDataParallel):
    """The old name of `DistributedDataParallel`."""

    def __init__(self, *args: _Any, **kwargs: _Any) -> None:
        _warnings.warn(
            "`torch.nn.parallel.DistributedDataParallelCPU` is deprecated, "
            "please use `torch.nn.parallel.DistributedDataParallel` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


_end_at_callers(__name__)
