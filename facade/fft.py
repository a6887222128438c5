"""PyTorch's `torch.fft`: discrete Fourier transforms."""

from __future__ import annotations

from ._ops.calls.functions import in_namespace as _in_namespace
from ._ops.creation.factory_tools import placed as _placed

_made = _in_namespace("fft")
_made.update({name: _placed(_made[name], out=True) for name in ("fftfreq", "rfftfreq")})
globals().update(_made)
__all__ = list(_made)
