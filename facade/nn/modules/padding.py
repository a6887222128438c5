"""PyTorch's `torch.nn.modules.padding`: more elements around."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    """Pad the last dims by a mode, each by two numbers, the last dim's first."""

    __constants__ = ["padding"]
    padding: tuple[int, ...]
    _dims: ClassVar[int]
    _mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """Tell the padding."""
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input: Any) -> None:
        ranks = (self._dims + 1, self._dims + 2)
        if input.dim() not in ranks:
            raise ValueError(
                f"expected {ranks[0]}D or {ranks[1]}D input (got {input.dim()}D input)"
            )

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pad a length with its other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pad images with their other ends."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pad volumes with their other ends."""

    _dims = 3


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pad a length with its mirror image."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad images with their mirror images."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad volumes with their mirror images."""

    _dims = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pad a length with its first and last element."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad images with their borders."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad volumes with their borders."""

    _dims = 3


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Tell the padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad a length with a value."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad images with a value."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad volumes with a value."""

    _dims = 3


class _Zero(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Tell the padding."""
        return f"{self.padding}"


class ZeroPad1d(_Zero, ConstantPad1d):
    """Pad a length with zeros."""


class ZeroPad2d(_Zero, ConstantPad2d):
    """Pad images with zeros."""


class ZeroPad3d(_Zero, ConstantPad3d):
    """Pad volumes with zeros."""
