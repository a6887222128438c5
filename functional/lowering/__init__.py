"""A program as one JAX function: its gradients, its tangents and what backward keeps."""
