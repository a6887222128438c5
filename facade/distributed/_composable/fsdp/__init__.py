"""PyTorch's `torch.distributed._composable.fsdp`: names to import; one device computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...._core.absent.stand_ins import refuse

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard",
]  # fmt: skip

fully_shard = refuse("distributed.fsdp.fully_shard", "one device computes so far")


class FSDPModule:
    """A module that lies on several devices: there is none."""


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes that a module computes in."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Keep parameters where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keep parameters on the host."""

    pin_memory: bool = True
