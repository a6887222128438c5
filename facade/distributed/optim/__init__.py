"""PyTorch's `torch.distributed.optim`: a class for `isinstance`."""

from ..._core.absent.stand_ins import refuse_class
from ...optim import Optimizer as _Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

ZeroRedundancyOptimizer = refuse_class(
    "distributed.optim.ZeroRedundancyOptimizer",
    "`fsdp.fully_shard` splits an optimizer's state with its parameters",
    _Optimizer,
)
