"""Small data at rest on the host: NumPy computes with them at once, and nothing is recorded."""
