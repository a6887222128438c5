"""Gradient nodes, the edges between them and the tensors that they keep."""
