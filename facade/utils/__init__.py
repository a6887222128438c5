"""PyTorch's `torch.utils` on JAX."""
