"""PyTorch's `torch.fft`: discrete Fourier transforms."""

from __future__ import annotations

from ._table import in_namespace as _in_namespace

_made = _in_namespace("fft")
globals().update(_made)
__all__ = list(_made)
