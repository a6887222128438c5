"""Calls that NumPy computes at once, with the graph that a cut would have left of them."""
