"""PyTorch's `torch.distributed.checkpoint`: state dicts, sharded or not, in folders of orbax."""

from .api import CheckpointException as CheckpointException
from .default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from .default_planner import DefaultSavePlanner as DefaultSavePlanner
from .filesystem import FileSystemReader as FileSystemReader
from .filesystem import FileSystemWriter as FileSystemWriter
from .state_dict_loader import load as load
from .state_dict_loader import load_state_dict as load_state_dict
from .state_dict_saver import async_save as async_save
from .state_dict_saver import save as save
from .state_dict_saver import save_state_dict as save_state_dict

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader",
    "FileSystemWriter", "async_save", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip
