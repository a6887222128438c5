"""PyTorch's `torch._dynamo._trace_wrapped_higher_order_op`."""

from __future__ import annotations

import contextlib


class TransformGetItemToIndex(contextlib.ContextDecorator):
    """Change nothing within a block: under `vmap` tensors index as elsewhere."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass
