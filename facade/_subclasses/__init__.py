"""PyTorch's `torch._subclasses`: shapes without data are `leafax.eval_shape`'s."""

from .fake_tensor import FakeTensor as FakeTensor
from .fake_tensor import FakeTensorMode as FakeTensorMode
