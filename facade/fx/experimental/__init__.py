"""PyTorch's `torch.fx.experimental`, as far as packages ask it whether anything is traced."""

from . import proxy_tensor as proxy_tensor
