"""Comparison of gradients with finite differences."""
