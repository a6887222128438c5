"""PyTorch's `torch.Tag`: facts about ops."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

Tag = Enum(  # type: ignore[misc]
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy",
    module="leafax",
)


def list_tags(tags: Tag | Sequence[Tag] | None) -> tuple[Tag, ...]:
    """Return tags, given as one, several or none, each once."""
    if tags is None:
        return ()
    return (tags,) if isinstance(tags, Tag) else tuple(dict.fromkeys(tags))
