"""PyTorch's `torch.nn.modules.channelshuffle`: channels of groups in turns."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Take one channel of each group in turn."""

    __constants__ = ["groups"]
    groups: int

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Tell the number of groups."""
        return f"groups={self.groups}"
