"""Blocks of a mask: as a matrix, or as counts and indices by row."""

from __future__ import annotations

from typing import Any

from ..._core.dtypes import bool as bool_dtype
from ..._core.dtypes import int8, int32
from ..._ops.creation.factories import arange
from .. import functional as F


def blocks_of(count: Any, which: Any) -> Any:
    """Turn counts `(..., rows)` and indices `(..., rows, columns)` into a matrix of 0 and 1."""
    columns = which.shape[-1]
    given = arange(columns, device=which.device) < count.unsqueeze(-1)
    place = which.masked_fill(given.logical_not(), columns)  # beside the matrix
    dense = which.new_zeros((*which.shape[:-1], columns + 1), dtype=int32)
    return dense.scatter(-1, place.long(), 1)[..., :columns]


def ordered(dense: Any) -> tuple[Any, Any]:
    """Turn a matrix of 0 and 1 into counts and indices, those that are there first."""
    dense = dense.to(int32)
    which = dense.argsort(dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(int32), which.to(int32)


def transposed(count: Any, which: Any) -> tuple[Any, Any]:
    """Turn counts and indices by row into those by column."""
    return ordered(blocks_of(count, which).transpose(-2, -1))


def blocks_of_mask(mask: Any, size: tuple[int, int], separate: bool) -> tuple[Any, Any]:
    """Find the blocks of a mask `(B, H, Q, KV)` that are True in part, and in full if `separate`.

    Returns:
      Two matrices of int8; without `separate` the first has both kinds, the second is None.
    """
    if mask.dtype != bool_dtype:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    missing = [-n % s for n, s in zip(mask.shape[-2:], size, strict=True)]
    mask = F.pad(mask, (0, missing[1], 0, missing[0]))
    batch, heads, queries, keys = mask.shape
    mask = mask.view(batch, heads, queries // size[0], size[0], keys // size[1], size[1])
    total = mask.permute(0, 1, 2, 4, 3, 5).sum((-2, -1))
    if not separate:
        return (total > 0).to(int8), None
    full = size[0] * size[1]
    return ((total > 0) & (total < full)).to(int8), (total == full).to(int8)
