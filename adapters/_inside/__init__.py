"""Taps, hooks and observers inside a Flax model."""
