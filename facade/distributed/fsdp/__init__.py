"""PyTorch's `torch.distributed.fsdp`: names to import; one device computes."""

from ..._core.absent.stand_ins import refuse
from .._composable.fsdp import CPUOffloadPolicy as CPUOffloadPolicy
from .._composable.fsdp import FSDPModule as FSDPModule
from .._composable.fsdp import MixedPrecisionPolicy as MixedPrecisionPolicy
from .._composable.fsdp import OffloadPolicy as OffloadPolicy
from .._composable.fsdp import fully_shard as fully_shard
from . import fully_sharded_data_parallel as fully_sharded_data_parallel
from . import wrap as wrap
from .api import BackwardPrefetch as BackwardPrefetch
from .api import CPUOffload as CPUOffload
from .api import FullOptimStateDictConfig as FullOptimStateDictConfig
from .api import FullStateDictConfig as FullStateDictConfig
from .api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from .api import LocalStateDictConfig as LocalStateDictConfig
from .api import MixedPrecision as MixedPrecision
from .api import OptimStateDictConfig as OptimStateDictConfig
from .api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from .api import ShardedStateDictConfig as ShardedStateDictConfig
from .api import ShardingStrategy as ShardingStrategy
from .api import StateDictConfig as StateDictConfig
from .api import StateDictType as StateDictType
from .fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel

register_fsdp_forward_method = refuse(
    "distributed.fsdp.register_fsdp_forward_method", "one device computes so far"
)
