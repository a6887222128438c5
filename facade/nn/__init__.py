"""PyTorch's `torch.nn` on JAX: modules, parameters, functional forms."""
