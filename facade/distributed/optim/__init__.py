"""PyTorch's `torch.distributed.optim`: a class for `isinstance`."""

from ..._core.absent.stand_ins import refuse_class
from ...optim import Optimizer as _Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

ZeroRedundancyOptimizer = refuse_class(
    "distributed.optim.ZeroRedundancyOptimizer", "one process computes so far", _Optimizer
)
