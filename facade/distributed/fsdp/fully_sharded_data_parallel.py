"""PyTorch's `torch.distributed.fsdp.fully_sharded_data_parallel`: a class for `isinstance`."""

from ..._core.absent.stand_ins import refuse_class
from ...nn.modules.module import Module as _Module
from .api import BackwardPrefetch as BackwardPrefetch
from .api import CPUOffload as CPUOffload
from .api import FullOptimStateDictConfig as FullOptimStateDictConfig
from .api import FullStateDictConfig as FullStateDictConfig
from .api import LocalStateDictConfig as LocalStateDictConfig
from .api import MixedPrecision as MixedPrecision
from .api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from .api import ShardedStateDictConfig as ShardedStateDictConfig
from .api import ShardingStrategy as ShardingStrategy
from .api import StateDictType as StateDictType

FullyShardedDataParallel = refuse_class(
    "distributed.fsdp.FullyShardedDataParallel", "one device computes so far", _Module,
    module="leafax.distributed.fsdp.fully_sharded_data_parallel",
)  # fmt: skip
