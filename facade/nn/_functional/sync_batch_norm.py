"""Batch normalization by the batches of several processes."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE as _TABLE

from ..._core.dtypes import bfloat16, float16
from ..._core.processes.collectives import gather_arrays, reduce_arrays
from ..._core.processes.group import ProcessGroup
from ..._ops.calls.functions import function as _function
from ..._ops.creation.factories import full
from ..._runtime.observation import observe
from ..._tracing.inputs import from_array
from ...autograd import Function

_NAME = "SyncBatchNorm"
_HALVES = (float16, bfloat16)
_stack = _function(_TABLE["stack"])


class _Gathered(Function):
    """The tensors of all processes, stacked; gradients are summed on the way back."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, group: ProcessGroup) -> Any:
        ctx.group = group
        return from_array(gather_arrays(group, [observe(tensor, "jax()")], _NAME)[0])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        (total,) = reduce_arrays(ctx.group, [observe(grad, "jax()")], "SUM", _NAME)
        return from_array(total)[ctx.group.rank()], None


def sync_batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, share: Any,
    eps: float, group: ProcessGroup,
) -> Any:  # fmt: skip
    """Standardize each channel by the batches of all processes.

    Args:
      input: this process's batch; the channels are its second dimension.
      running_mean, running_var: moved towards the statistics of all; None for none.
      weight, bias: one number a channel, or None.
      share: how far the running statistics are moved.
      eps: added to the variance.
      group: the processes.
    """
    dtype = input.dtype
    input = input.float() if dtype in _HALVES else input
    dims = [0, *range(2, input.dim())]
    count = input.numel() // input.size(1)
    mean = input.mean(dims)
    spread = ((input - _over(mean, input)) ** 2).sum(dims)
    counts = full((input.size(1),), float(count), dtype=mean.dtype)
    parts = _Gathered.apply(_stack([mean, spread, counts]), group)
    means, spreads, counts = parts[:, 0], parts[:, 1], parts[:, 2].detach()
    total = counts.sum(0)
    mean = (means * counts).sum(0) / total
    spread = (spreads + counts * (means - mean) ** 2).sum(0)
    variance = spread / total
    if running_mean is not None:
        running_mean.lerp_(mean.detach(), share)
        running_var.lerp_((spread / (total - 1)).detach(), share)
    result = (input - _over(mean, input)) * _over((variance + eps).rsqrt(), input)
    if weight is not None:
        result = result * _over(weight, input)
    result = result if bias is None else result + _over(bias, input)
    return result.to(dtype)


def _over(t: Any, input: Any) -> Any:
    """Return one number a channel as it goes with an input."""
    return t.reshape(1, -1, *[1] * (input.dim() - 2))
