"""PyTorch's `torch.quantization`: an older name of `torch.ao.quantization`."""

from ..ao.quantization import *  # noqa: F403
