"""`torch.embedding_bag`, which tells where its rows went beside their sums."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.dtypes import scalar_name

from .._ops.creation.factories import arange, zeros
from ..nn._functional import unpool

_MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Sums (mode 0), means (1) or maxima (2) of rows of `weight`.

    Reading `offsets` runs the program.

    Returns:
      The bags `(count, dim)`; the bag of each index (none for plain sums of single precision and
      less); how many rows each bag has (zeros for sums); which rows are the maxima.
    """
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if per_sample_weights is not None and mode:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    out = unpool.embedding_bag(
        indices, weight, offsets, None, 2.0, bool(scale_grad_by_freq), _MODES[mode], bool(sparse),
        per_sample_weights, bool(include_last_offset), padding_idx,
    )  # fmt: skip
    bags, count = unpool.bags_of(indices.shape[0], offsets, include_last_offset)
    if mode == 0:
        plain = scalar_name(weight._v.dtype) != "Double" and padding_idx is None
        none = zeros(count, dtype=indices.dtype)
        bags = zeros(0, dtype=indices.dtype) if plain else bags.to(indices.dtype)
        return out, bags, none, none.clone()
    bags = bags.to(indices.dtype)
    used = arange(indices.shape[0]) >= 0
    if padding_idx is not None:
        used = indices != padding_idx % weight.shape[0]
    sizes = zeros(count, dtype=indices.dtype).index_add(0, bags, used.to(indices.dtype))
    if mode == 1:
        return out, bags, sizes, sizes.clone()
    return out, bags, sizes, _maximal(weight.detach(), indices, bags, used, count)


def _maximal(weight: Any, indices: Any, bags: Any, used: Any, count: int) -> Any:
    """Return the rows that the maxima are from, 0 for empty bags."""
    n = indices.shape[0]
    first = unpool.winners(weight[indices], bags.long(), count, used)
    rows = indices[first.clamp(max=max(n - 1, 0))] if n else first
    return rows.masked_fill(first == n, 0).to(indices.dtype)
