"""PyTorch's `torch.fft`: discrete Fourier transforms."""

from __future__ import annotations

from ._factories import placed as _placed
from ._table import in_namespace as _in_namespace

_made = _in_namespace("fft")
_made.update({name: _placed(_made[name], out=True) for name in ("fftfreq", "rfftfreq")})
globals().update(_made)
__all__ = list(_made)
