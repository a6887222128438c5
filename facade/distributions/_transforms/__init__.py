"""Transforms of random variables."""
