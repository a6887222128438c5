"""PyTorch's `torch.distributed.checkpoint.format_utils`: names to import."""

from ..._core.absent.stand_ins import refuse
from .default_planner import _EmptyStateDictLoadPlanner as _EmptyStateDictLoadPlanner

_FILES = "one process computes so far: `leafax.save` and `leafax.load` write and read its files"
dcp_to_torch_save = refuse("distributed.checkpoint.format_utils.dcp_to_torch_save", _FILES)
torch_save_to_dcp = refuse("distributed.checkpoint.format_utils.torch_save_to_dcp", _FILES)
