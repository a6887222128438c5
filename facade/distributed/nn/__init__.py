"""PyTorch's `torch.distributed.nn`: collectives that gradients go through."""

from . import functional as functional
from .functional import *  # noqa: F403
