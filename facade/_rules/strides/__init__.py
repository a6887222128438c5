"""Strides of results: how they lie in memory."""
