"""The layers of `torch.nn.modules.pooling` whose windows are drawn."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import functional as F
from ..module import Module
from ..utils import _ntuple


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dims: ClassVar[int]
    _random_samples: Any

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._check_kernel(kernel_size)
        each, name = _ntuple(self._dims), f"FractionalMaxPool{self._dims}d"
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        ratios = self.output_ratio or ()
        if not all(0 < ratio < 1 for ratio in ratios[: self._dims]):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _check_kernel(self, kernel_size: Any) -> None:
        """Refuse sizes that only some of these layers refuse when they are made."""

    def _given(self) -> tuple[Any, Any, Any, Any]:
        return (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Take the largest number of each of as many drawn windows as the output has places."""

    _dims = 2

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        samples = self._random_samples
        return F.fractional_max_pool2d(input, *self._given(), _random_samples=samples)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Take the largest number of each of as many drawn windows as the output has places."""

    _dims = 3

    def _check_kernel(self, kernel_size: Any) -> None:
        sizes = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,)
        if not all(not isinstance(k, (int, float)) or k > 0 for k in sizes):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        samples = self._random_samples
        return F.fractional_max_pool3d(input, *self._given(), _random_samples=samples)
