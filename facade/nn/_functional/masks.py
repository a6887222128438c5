"""Masks of attention: True where not to attend, or numbers to be added to the scores."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core import dtypes


def canonical_mask(
    mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any,
    check_other: bool = True,
) -> Any:  # fmt: skip
    """Turn a mask into numbers to be added: PyTorch's `functional._canonical_mask`.

    Args:
      mask: bool, True where not to attend; or of a floating dtype; or None.
      mask_name: what the caller calls it.
      other_type: the dtype of the mask that it is used with, None if there is none.
      other_name: what the caller calls that one.
      target_type: the dtype of the numbers for a bool mask.
      check_other: warn where the two dtypes differ.

    Returns:
      The mask in a floating dtype, or None.

    Raises:
      AssertionError: the mask is of integers.

    >>> import leafax
    >>> canonical_mask(leafax.tensor([False, True]), "mask", None, "", leafax.float32)
    tensor([0., -inf])
    """
    if mask is None:
        return None
    kind = mask.dtype
    boolean = kind == dtypes.bool
    if not boolean and not kind.is_floating_point:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and kind != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type "
            "for both instead.",
            stacklevel=2,
        )
    if not boolean:
        return mask
    return mask.new_zeros(tuple(mask.shape), dtype=target_type).masked_fill_(mask, float("-inf"))


def dtype_of(mask: Any) -> Any:
    """Return the dtype of a mask, None for None."""
    return None if mask is None else mask.dtype
