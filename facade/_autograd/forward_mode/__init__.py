"""Dual tensors and how ops carry tangents on."""
