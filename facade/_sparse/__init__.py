"""Sparse tensors: the indices and values of what is not zero."""
