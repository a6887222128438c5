"""Hooks on saved tensors, and nodes that call them."""

from . import raw_saved

__all__ = ["raw_saved"]
