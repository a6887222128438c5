"""PyTorch's `torch.distributed.tensor.parallel`: names to import; one device computes."""

from ...._core.absent.stand_ins import refuse, refuse_class
from .style import ColwiseParallel as ColwiseParallel
from .style import ParallelStyle as ParallelStyle
from .style import PrepareModuleInput as PrepareModuleInput
from .style import PrepareModuleOutput as PrepareModuleOutput
from .style import RowwiseParallel as RowwiseParallel
from .style import SequenceParallel as SequenceParallel

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip

_ONE = "one device computes so far"
parallelize_module = refuse("distributed.tensor.parallel.parallelize_module", _ONE)
loss_parallel = refuse_class("distributed.tensor.parallel.loss_parallel", _ONE)
