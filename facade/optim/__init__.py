"""PyTorch's `torch.optim` on optax."""
