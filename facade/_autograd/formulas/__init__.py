"""Gradients of gradients by PyTorch's formulas, so that their nodes have PyTorch's names."""

from . import by_formula, from_stand_ins

__all__ = ["by_formula", "from_stand_ins"]
