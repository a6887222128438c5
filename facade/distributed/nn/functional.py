"""PyTorch's `torch.distributed.nn.functional`: collectives that gradients go through."""

from __future__ import annotations

from typing import Any

from ..._core.processes.group import default_group
from ...autograd import Function
from .. import _collectives
from .._kinds import ReduceOp
from .._tensors import member

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce"]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, op: Any, group: Any) -> Any:
        ctx.op, ctx.group = op, group
        found = tensor.detach().clone()
        _collectives.all_reduce(found, op, group)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        if ctx.op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise NotImplementedError(f"there is no gradient of all_reduce by {ctx.op}")
        return _AllReduce.apply(grad, ctx.op, ctx.group), None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, src: int, group: Any) -> Any:
        ctx.src, ctx.group = src, group
        found = tensor.detach().clone()
        _collectives.broadcast(found, src, group)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return _Reduce.apply(grad, ctx.src, ReduceOp.SUM, ctx.group), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, dst: int, op: Any, group: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        found = tensor.detach().clone()
        _collectives.reduce(found, dst, op, group)
        return found if default_group().rank() == dst else found.zero_()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return _Broadcast.apply(grad, ctx.dst, ctx.group), None, None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, group: Any) -> Any:
        ctx.group = group
        size = member(group, "all_gather").size()  # type: ignore[union-attr]
        found = tensor.new_empty((size, *tensor.shape))
        _collectives.all_gather_into_tensor(found, tensor, group)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        found = grad.new_empty(grad.shape[1:])
        _collectives.reduce_scatter_tensor(found, grad.contiguous(), group=ctx.group)
        return found, None


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all processes."""
    default_group()
    return tuple(_AllGather.apply(tensor, group).unbind(0))


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return what the tensors of all processes give together."""
    default_group()
    return _AllReduce.apply(tensor, op, group)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return what the tensors of all processes give together in process `dst`, zeros in others."""
    default_group()
    return _Reduce.apply(tensor, dst, op, group)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of process `src`."""
    default_group()
    return _Broadcast.apply(tensor, src, group)
