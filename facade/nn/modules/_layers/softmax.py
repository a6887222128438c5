"""Softmax and its kin as layers."""

from __future__ import annotations

from typing import Any

from ... import functional as F
from ..module import Module


class _AlongDim(Module):
    """Hold the dim along which the outputs sum to 1; PyTorch chooses one where it is None."""

    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """Compute `softmax(-x)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Compute `exp(x)`, scaled to sum to 1 along `dim`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Compute the softmax over the channels of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Compute the logarithm of the softmax along `dim`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.log_softmax(input, self.dim, _stacklevel=5)
