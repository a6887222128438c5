"""PyTorch's `torch.distributed.fsdp.api`: settings that packages make; few are read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class ShardingStrategy(enum.Enum):
    """Parts of a module that lie on several devices."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(enum.Enum):
    """When parameters are fetched for the backward pass."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """Kinds of state dicts of a module on several devices."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass
class MixedPrecision:
    """The dtypes that a module computes in."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Keep parameters on the host."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Settings of a state dict."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Settings of a whole state dict."""

    rank0_only: bool = False


class LocalStateDictConfig(StateDictConfig):
    """Settings of a state dict of a process."""


class ShardedStateDictConfig(StateDictConfig):
    """Settings of a state dict in parts."""


@dataclass
class OptimStateDictConfig:
    """Settings of an optimizer's state dict."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Settings of a whole optimizer's state dict."""

    rank0_only: bool = False


class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Settings of an optimizer's state dict of a process."""


class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Settings of an optimizer's state dict in parts."""
