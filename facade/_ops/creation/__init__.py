"""Tensors from data, constants, windows and random draws."""
