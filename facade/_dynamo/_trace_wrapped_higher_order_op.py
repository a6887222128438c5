"""PyTorch's `torch._dynamo._trace_wrapped_higher_order_op`."""

from __future__ import annotations

from .._core.absent.stand_ins import Block


class TransformGetItemToIndex(Block):
    """Change nothing within a block: under `vmap` tensors index as elsewhere."""
