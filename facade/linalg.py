"""PyTorch's `torch.linalg`: linear algebra on batches of matrices."""

from __future__ import annotations

from ._table import in_namespace as _in_namespace

_made = _in_namespace("linalg")
globals().update(_made)

__all__ = list(_made)
