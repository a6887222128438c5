"""PyTorch's `torch.cuda.nccl`: collectives of GPUs, which XLA calls by itself."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import refuse

__all__ = [
    "all_gather", "all_reduce", "broadcast", "init_rank", "is_available", "reduce",
    "reduce_scatter", "unique_id", "version",
]  # fmt: skip

_DISTRIBUTED = "`leafax.distributed` has the collectives"
all_reduce = refuse("cuda.nccl.all_reduce", _DISTRIBUTED)
all_gather = refuse("cuda.nccl.all_gather", _DISTRIBUTED)
broadcast = refuse("cuda.nccl.broadcast", _DISTRIBUTED)
init_rank = refuse("cuda.nccl.init_rank", _DISTRIBUTED)
reduce = refuse("cuda.nccl.reduce", _DISTRIBUTED)
reduce_scatter = refuse("cuda.nccl.reduce_scatter", _DISTRIBUTED)
unique_id = refuse("cuda.nccl.unique_id", _DISTRIBUTED)
version = refuse("cuda.nccl.version", "XLA brings its own, and tells no version")


def is_available(tensors: Any) -> bool:
    """Return False: programs do not call NCCL themselves."""
    return False
