"""PyTorch's argument parser, its data, and the words of its errors."""
