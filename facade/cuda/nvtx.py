"""PyTorch's `torch.cuda.nvtx`: marks for NVIDIA's profiler, which XLA sets by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._core.absent.stand_ins import do_nothing as mark
from .._core.absent.stand_ins import do_nothing as range_end
from .._core.absent.stand_ins import do_nothing as range_pop
from .._core.absent.stand_ins import do_nothing as range_push
from .._core.absent.stand_ins import do_nothing as range_start

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:  # noqa: A001 # PyTorch's name
    """Mark nothing within a block."""
    yield
