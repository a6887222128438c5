"""Ops that rearrange elements: views, joins and slices."""
