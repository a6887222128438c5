"""Gradients as PyTorch's formulas, for graphs that are differentiated again."""
