"""PyTorch's `torch.nested`: names to import; there are no nested tensors."""

from __future__ import annotations

from .._core.absent.stand_ins import refuse

__all__ = [
    "as_nested_tensor", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip

_PAD = "there are no nested tensors: `nn.utils.rnn.pad_sequence` and a mask do it"
nested_tensor = refuse("nested.nested_tensor", _PAD)
as_nested_tensor = refuse("nested.as_nested_tensor", _PAD)
nested_tensor_from_jagged = refuse("nested.nested_tensor_from_jagged", _PAD)
to_padded_tensor = refuse("nested.to_padded_tensor", _PAD)
narrow = refuse("nested.narrow", _PAD)
