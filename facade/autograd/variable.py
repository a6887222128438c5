"""PyTorch's `torch.autograd.variable`."""

from ._variable import Variable as Variable
