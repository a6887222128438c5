"""PyTorch's `torch.storage`: what tensors say of their memory."""

from ._ops.creation.storage_objects import TypedStorage as TypedStorage
from ._ops.creation.storage_objects import UntypedStorage as UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
