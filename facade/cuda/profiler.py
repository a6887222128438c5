"""PyTorch's `torch.cuda.profiler`: marks for NVIDIA's tools, which XLA's programs do not need."""

from __future__ import annotations

from .._core.absent.stand_ins import Block as profile
from .._core.absent.stand_ins import do_nothing as start
from .._core.absent.stand_ins import do_nothing as stop

__all__ = ["profile", "start", "stop"]
