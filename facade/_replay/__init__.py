"""Whole calls that run again without being recorded: the machinery of `leafax.compile`."""
