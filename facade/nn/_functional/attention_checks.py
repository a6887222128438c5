"""Checks of the shapes that `multi_head_attention_forward` takes, in PyTorch's words."""

from __future__ import annotations

from typing import Any


def check_ranks(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> None:
    """Raise unless all are batched as `query` is."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    start = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected "
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"{start}`key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != rank - 1:
        raise AssertionError(
            f"{start}`key_padding_mask` to be `None` or {rank - 1}-D but found {padding.dim()}-D "
            "tensor instead"
        )
    if mask is None:
        return
    if mask.dim() not in (2, 3):
        raise AssertionError(
            f"{start}`attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
        )
    wanted = (heads, query.shape[0], key.shape[0])
    if rank == 2 and mask.dim() == 3 and tuple(mask.shape) != wanted:
        raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.shape}")


def check_sizes(query: Any, key: Any, value: Any, mask: Any, heads: int, separate: bool) -> None:
    """Raise unless batched keys, values and the mask fit one another.

    Args:
      separate: queries, keys and values have projections of their own.
    """
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if mask is None:
        return
    wanted: tuple[int, ...] = (query.shape[0], key.shape[0])
    if mask.dim() == 3:
        wanted = (query.shape[1] * heads, *wanted)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}."
        )


def check_padding(padding: Any, batch: int, length: int) -> None:
    """Raise unless the mask of padded keys has a row for each sequence."""
    if padding is None:
        return
    if padding.shape[0] != batch:
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {batch}, but got {padding.shape[0]}"
        )
    if padding.shape[1] != length:
        raise AssertionError(
            f"Expected key_padded_mask.shape[1] to be {length}, but got {padding.shape[1]}"
        )
