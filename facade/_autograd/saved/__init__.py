"""The `_saved_*` attributes of gradient nodes."""

from . import saved_attributes

__all__ = ["saved_attributes"]
