"""PyTorch's `torch.distributed.checkpoint`: names to import; `leafax.save` writes files."""

from ..._core.absent.stand_ins import refuse, refuse_class
from .default_planner import _FILES
from .default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from .default_planner import DefaultSavePlanner as DefaultSavePlanner

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "async_save", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip

save = refuse("distributed.checkpoint.save", _FILES)
load = refuse("distributed.checkpoint.load", _FILES)
async_save = refuse("distributed.checkpoint.async_save", _FILES)
save_state_dict = refuse("distributed.checkpoint.save_state_dict", _FILES)
load_state_dict = refuse("distributed.checkpoint.load_state_dict", _FILES)
FileSystemReader = refuse_class("distributed.checkpoint.FileSystemReader", _FILES)
FileSystemWriter = refuse_class("distributed.checkpoint.FileSystemWriter", _FILES)
