"""PyTorch's `torch.nn.modules.dropout`: some elements become 0 while training."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .module import Module

__all__ = [
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout",
]  # fmt: skip


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Tell the probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zero each element with probability `p` and scale the others by `1 / (1 - p)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Drop whole channels of `(N, C, L)` or `(C, L)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Drop whole channels of `(N, C, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Drop whole channels of `(N, C, D, H, W)` or `(C, D, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Drop elements so that mean and variance stay through SELU; `inplace` is ignored."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Drop whole channels as `AlphaDropout` drops elements; `inplace` is ignored."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.feature_alpha_dropout(input, self.p, self.training)
