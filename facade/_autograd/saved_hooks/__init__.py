"""Hooks on saved tensors, and nodes that call them."""

from . import raw_saved, record_hooked

__all__ = ["raw_saved", "record_hooked"]
