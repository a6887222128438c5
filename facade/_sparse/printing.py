"""Texts of sparse tensors, as PyTorch prints them."""

from __future__ import annotations

import re
from typing import Any

from .._core.default_dtype import get_default_dtype
from .._core.dtypes import bool as bool_
from .._core.dtypes import int64
from .._tensor.printing import join_suffixes
from .tensor import CompressedTensor

_START = "tensor("
_INDENT = " " * len(_START)


def show(x: Any) -> str:
    """Write a sparse tensor as PyTorch does."""
    if isinstance(x, CompressedTensor):
        first, second = x.names
        parts = [(first, x._starts), (second, x._across), ("values", x._held)]
    else:
        parts = [("indices", x._places), ("values", x._held)]
    suffixes = [f"size={tuple(x.shape)}", f"nnz={x._nnz()}"]
    if x.dtype not in (get_default_dtype(), int64, bool_):
        suffixes.append(f"dtype={x.dtype}")
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(x.grad_fn).__name__}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    suffixes.append(f"layout={x.layout}")
    lines = []
    for name, part in parts:
        text = repr(part.detach()) if part.numel() else f"tensor([], size={tuple(part.shape)})"
        text = re.sub(r", dtype=torch\.\w+\)$", ")", text)
        indent = " " * (len(_START) + len(name) + 1)
        lines.append(re.sub(r"\n(?!\n)", f"\n{indent}", f"{name}={text}"))
    text = _START + f",\n{_INDENT}".join(lines)
    return join_suffixes(text, suffixes, len(_START), new_line=x.is_sparse)
