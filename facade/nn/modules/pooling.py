"""PyTorch's `torch.nn.modules.pooling`: one number for each window."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import functional as F
from ._layers.adaptive_pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from ._layers.adaptive_pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from ._layers.adaptive_pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from ._layers.adaptive_pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from ._layers.adaptive_pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from ._layers.adaptive_pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from ._layers.adaptive_pooling import _AdaptiveAvgPoolNd as _AdaptiveAvgPoolNd
from ._layers.adaptive_pooling import _AdaptiveMaxPoolNd as _AdaptiveMaxPoolNd
from ._layers.fractional_pooling import FractionalMaxPool2d as FractionalMaxPool2d
from ._layers.fractional_pooling import FractionalMaxPool3d as FractionalMaxPool3d
from .module import Module
from .utils import _ntuple, _single

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
]  # fmt: skip


class _MaxPoolNd(Module):
    __constants__ = [
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode",
    ]  # fmt: skip
    return_indices: bool
    ceil_mode: bool

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """Tell the sizes."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def _given(self) -> tuple[Any, ...]:
        sizes = (self.kernel_size, self.stride, self.padding, self.dilation)
        return (*sizes, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPoolNd):
    """Take the largest number of each window of `(N, C, L)` or `(C, L)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.max_pool1d(input, *self._given())


class MaxPool2d(_MaxPoolNd):
    """Take the largest number of each window of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.max_pool2d(input, *self._given())


class MaxPool3d(_MaxPoolNd):
    """Take the largest number of each window of `(N, C, D, H, W)` or `(C, D, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.max_pool3d(input, *self._given())


class _MaxUnpoolNd(Module):
    _dims: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        self.stride = each(kernel_size if stride is None else stride)
        self.padding = each(padding)

    def extra_repr(self) -> str:
        """Tell the sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Put what `MaxPool1d` took back in its places, zeros elsewhere."""

    _dims = 1

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Compute the layer."""
        sizes = (self.kernel_size, self.stride, self.padding, output_size)
        return F.max_unpool1d(input, indices, *sizes)


class MaxUnpool2d(_MaxUnpoolNd):
    """Put what `MaxPool2d` took back in its places, zeros elsewhere."""

    _dims = 2

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Compute the layer."""
        sizes = (self.kernel_size, self.stride, self.padding, output_size)
        return F.max_unpool2d(input, indices, *sizes)


class MaxUnpool3d(_MaxUnpoolNd):
    """Put what `MaxPool3d` took back in its places, zeros elsewhere."""

    _dims = 3

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Compute the layer."""
        sizes = (self.kernel_size, self.stride, self.padding, output_size)
        return F.max_unpool3d(input, indices, *sizes)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        """Tell the sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Take the mean of each window of `(N, C, L)` or `(C, L)`."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        sizes = (self.kernel_size, self.stride, self.padding)
        return F.avg_pool1d(input, *sizes, self.ceil_mode, self.count_include_pad)


class _AvgPoolDivided(_AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _given(self) -> tuple[Any, ...]:
        sizes = (self.kernel_size, self.stride, self.padding)
        return (*sizes, self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPoolDivided):
    """Take the mean of each window of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.avg_pool2d(input, *self._given())


class AvgPool3d(_AvgPoolDivided):
    """Take the mean of each window of `(N, C, D, H, W)` or `(C, D, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.avg_pool3d(input, *self._given())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding", 0)  # older states lack these
        self.__dict__.setdefault("ceil_mode", False)
        self.__dict__.setdefault("count_include_pad", True)


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    norm_type: float
    ceil_mode: bool

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """Tell the norm and the sizes."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in _LPPoolNd.__constants__)

    def _given(self) -> tuple[Any, ...]:
        return (float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """Take the `norm_type`-norm of each window of `(N, C, L)` or `(C, L)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.lp_pool1d(input, *self._given())


class LPPool2d(_LPPoolNd):
    """Take the `norm_type`-norm of each window of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.lp_pool2d(input, *self._given())


class LPPool3d(_LPPoolNd):
    """Take the `norm_type`-norm of each window of `(N, C, D, H, W)` or `(C, D, H, W)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.lp_pool3d(input, *self._given())
