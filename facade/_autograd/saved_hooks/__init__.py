"""Hooks on saved tensors, and nodes that call them."""
