"""PyTorch's `torch._dynamo.external_utils`."""

from ..compiler import is_compiling as is_compiling

__all__ = ["is_compiling"]
