"""Ops that record other ops, as PyTorch decomposes them."""
