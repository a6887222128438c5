"""PyTorch's `torch.distributed._tensor`: an older name of `torch.distributed.tensor`."""

from ..tensor import *  # noqa: F403
