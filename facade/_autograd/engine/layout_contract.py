"""PyTorch's contract that a gradient lies in memory as its leaf does."""

from __future__ import annotations

from typing import Any

from ..._rules.strides.layouts import dense, is_contiguous
from ..._storage.strides import layout


def layout_warnings(leaf: Any, create_graph: bool) -> list[tuple[str, str]]:
    """Word the warning for a gradient that does not lie as its leaf does: `[(text, key)]` or none.

    Args:
      create_graph: the warning comes once with it, and once without.
    """
    grad, want = layout(leaf._grad), layout(leaf)
    if dense(want):
        three = zip(grad.shape, grad.strides, want.strides, strict=True)
        alike = all(s == w if n != 1 else s for n, s, w in three)
    else:
        alike = is_contiguous(grad)
    if alike:
        return []
    text = (
        "grad and param do not obey the gradient layout contract. This is not an error, but "
        f"may impair performance.\ngrad.sizes() = {list(grad.shape)}, strides() = "
        f"{list(grad.strides)}\nparam.sizes() = {list(want.shape)}, strides() = "
        f"{list(want.strides)}"
    )
    return [(text, f"gradient layout contract {create_graph}")]
