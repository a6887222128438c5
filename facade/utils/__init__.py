"""PyTorch's `torch.utils` on JAX."""

from . import checkpoint as checkpoint
