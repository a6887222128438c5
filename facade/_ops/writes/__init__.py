"""In-place ops, `out=` and `set_`."""
