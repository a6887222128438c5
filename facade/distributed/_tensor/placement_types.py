"""PyTorch's `torch.distributed._tensor.placement_types`: the older name of it in `tensor`."""

from ..tensor.placement_types import *  # noqa: F403
