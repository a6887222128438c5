"""PyTorch's `torch.distributed.tensor.parallel`: layers that are split over devices."""

from ...._core.absent.stand_ins import refuse_class
from .api import parallelize_module as parallelize_module
from .style import ColwiseParallel as ColwiseParallel
from .style import ParallelStyle as ParallelStyle
from .style import PrepareModuleInput as PrepareModuleInput
from .style import PrepareModuleInputOutput as PrepareModuleInputOutput
from .style import PrepareModuleOutput as PrepareModuleOutput
from .style import RowwiseParallel as RowwiseParallel
from .style import SequenceParallel as SequenceParallel

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput",
    "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel", "loss_parallel",
    "parallelize_module",
]  # fmt: skip

loss_parallel = refuse_class(
    "distributed.tensor.parallel.loss_parallel",
    "XLA splits the loss over the devices by itself: leave the block out",
)
