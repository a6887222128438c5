"""Calls of Flax modules, linen and nnx."""
