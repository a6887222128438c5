"""PyTorch's `torch.utils.flop_counter`: a class to import; XLA counts the operations."""

from __future__ import annotations

from .._core.absent.stand_ins import leave, refuse_class

__all__ = ["FlopCounterMode", "register_flop_formula"]

FlopCounterMode = refuse_class(
    "utils.flop_counter.FlopCounterMode",
    "XLA counts a program's operations: `jax.jit(leafax.functional.lower(...)).lower(...)"
    ".cost_analysis()`",
)


def register_flop_formula(targets: object, get_raw: bool = False) -> object:
    """Return a decorator that returns its function: nobody calls it."""
    return leave()
