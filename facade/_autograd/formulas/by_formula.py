"""Gradients by PyTorch's formulas, which the engine asks for where somebody can look."""

from __future__ import annotations

from typing import Any

from ..extensions import extensions
from .differentiate import differentiate
from .from_result import from_result


def by_formula(node: Any, grads: list[Any], needed: set[Any], views: bool) -> list[Any] | None:
    """Take what a node passes on from its formula; None if it has none.

    Args:
      views: ask for those formulas alone that make views.
    """
    passed = differentiate(node, grads, needed, views)
    if passed is None and not views:
        return from_result(node, grads, needed, twice=True)
    return passed


extensions.by_formula = by_formula
