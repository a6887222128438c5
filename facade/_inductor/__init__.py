"""The names of PyTorch's `torch._inductor` that packages set; XLA compiles instead."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import do_nothing as cudagraph_mark_step_begin
from . import config as config

__all__ = ["config", "cudagraph_mark_step_begin", "list_mode_options", "list_options"]


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """Return no options: XLA has its own."""
    return {}


def list_options() -> list[str]:
    """Return no options: XLA has its own."""
    return []
