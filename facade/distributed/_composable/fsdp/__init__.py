"""PyTorch's `torch.distributed._composable.fsdp`: an older place of `fully_shard`."""

from ...fsdp._fully_shard import CPUOffloadPolicy as CPUOffloadPolicy
from ...fsdp._fully_shard import FSDPModule as FSDPModule
from ...fsdp._fully_shard import MixedPrecisionPolicy as MixedPrecisionPolicy
from ...fsdp._fully_shard import OffloadPolicy as OffloadPolicy
from ...fsdp._fully_shard import fully_shard as fully_shard

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard",
]  # fmt: skip
