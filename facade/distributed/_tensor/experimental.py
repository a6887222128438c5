"""PyTorch's `torch.distributed._tensor.experimental`: the older name of it in `tensor`."""

from ..tensor.experimental import *  # noqa: F403
