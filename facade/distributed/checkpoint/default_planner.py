"""PyTorch's `torch.distributed.checkpoint.default_planner`: classes to import."""

from ..._core.absent.stand_ins import refuse_class

_FILES = (
    "`leafax.save` and `leafax.load` write and read whole tensors, and `leafax.adapters.orbax` "
    "saves and restores sharded runs"
)
_HERE = "distributed.checkpoint.default_planner"
DefaultLoadPlanner = refuse_class(f"{_HERE}.DefaultLoadPlanner", _FILES)
DefaultSavePlanner = refuse_class(f"{_HERE}.DefaultSavePlanner", _FILES)
_EmptyStateDictLoadPlanner = refuse_class(
    f"{_HERE}._EmptyStateDictLoadPlanner", _FILES, DefaultLoadPlanner
)
