"""Ops that pick and write elements by index."""
