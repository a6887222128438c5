"""The `_saved_*` attributes of gradient nodes."""
