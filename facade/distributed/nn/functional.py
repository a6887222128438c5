"""PyTorch's `torch.distributed.nn.functional`: collectives of one process, with gradients."""

from __future__ import annotations

from typing import Any

from ..._core.process_group import default_group
from ..distributed_c10d import ReduceOp

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce"]


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes: this one's."""
    default_group()
    return (tensor.clone(),)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the sum over all processes: this one's tensor."""
    default_group()
    return tensor.clone()


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the sum over all processes: this one's tensor."""
    return all_reduce(tensor)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of a process: this one's."""
    return all_reduce(tensor)
