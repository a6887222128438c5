"""Overrides of public functions by `__torch_function__`."""
