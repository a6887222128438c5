"""Pooling to a size of the caller's choice."""

from __future__ import annotations

from typing import Any

from ... import functional as F
from ..module import Module


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]
    return_indices: bool

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        """Tell the size."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Take the largest number of each of `output_size` windows of `(N, C, L)` or `(C, L)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Take the largest numbers of `(N, C, H, W)` or `(C, H, W)`, as many as `output_size`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Take the largest numbers of `(N, C, D, H, W)` or without N, as many as `output_size`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """Tell the size."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Take the means of `output_size` windows of `(N, C, L)` or `(C, L)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Take the means of windows of `(N, C, H, W)` or `(C, H, W)`, as many as `output_size`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Take the means of windows of `(N, C, D, H, W)` or without N, as many as `output_size`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.adaptive_avg_pool3d(input, self.output_size)
