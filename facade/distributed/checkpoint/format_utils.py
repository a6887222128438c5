"""PyTorch's `torch.distributed.checkpoint.format_utils`: names to import."""

from ..._core.absent.stand_ins import refuse
from .default_planner import _FILES
from .default_planner import _EmptyStateDictLoadPlanner as _EmptyStateDictLoadPlanner

dcp_to_torch_save = refuse("distributed.checkpoint.format_utils.dcp_to_torch_save", _FILES)
torch_save_to_dcp = refuse("distributed.checkpoint.format_utils.torch_save_to_dcp", _FILES)
