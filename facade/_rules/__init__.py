"""PyTorch's rules about an op's results and gradients, as pure functions."""
