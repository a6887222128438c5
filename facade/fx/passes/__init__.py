"""PyTorch's `torch.fx.passes`: work on graphs."""

from . import shape_prop as shape_prop
