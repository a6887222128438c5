"""PyTorch's functions and methods of tensors."""
