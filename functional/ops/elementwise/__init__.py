"""Ops that compute each element of the result from those at its place."""
