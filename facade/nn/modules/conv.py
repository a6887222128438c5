"""PyTorch's `torch.nn.modules.conv`: convolutions and their transposes."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import functional as F
from ..parameter import UninitializedParameter
from ._layers.conv_base import _ConvNd, _ConvTransposeNd
from ._module.attributes import parameter_of
from .lazy import LazyModuleMixin
from .utils import _ntuple

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]  # fmt: skip


class _Conv(_ConvNd):
    _dims: ClassVar[int]
    _name: ClassVar[str]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        each = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride),
            padding if isinstance(padding, str) else each(padding), each(dilation), False,
            each(0), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._dims
        rest = (self.stride, padding, self.dilation, self.groups)
        return getattr(F, self._name)(input, weight, bias, *rest)

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        weight, bias = parameter_of(self, "weight"), parameter_of(self, "bias")
        return self._conv_forward(input, weight, bias)


class Conv1d(_Conv):
    """Convolve `(N, C, L)` or `(C, L)`."""

    _dims, _name = 1, "conv1d"


class Conv2d(_Conv):
    """Convolve `(N, C, H, W)` or `(C, H, W)`."""

    _dims, _name = 2, "conv2d"


class Conv3d(_Conv):
    """Convolve `(N, C, D, H, W)` or `(C, D, H, W)`."""

    _dims, _name = 3, "conv3d"


class _ConvTranspose(_ConvTransposeNd):
    _dims: ClassVar[int]
    _name: ClassVar[str]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        each = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), each(padding),
            each(dilation), True, each(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """Compute the layer.

        Args:
          output_size: one of the sizes that a convolution makes this input's of; by default the
            smallest, and `output_padding`.
        """
        if self.padding_mode != "zeros":
            raise ValueError(
                f"Only `zeros` padding mode is supported for ConvTranspose{self._dims}d"
            )
        if not isinstance(self.padding, tuple):
            raise AssertionError("self.padding must be a tuple")
        added = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._dims,
            self.dilation,
        )  # fmt: skip
        rest = (self.stride, self.padding, added, self.groups, self.dilation)
        return getattr(F, self._name)(input, self.weight, self.bias, *rest)


class ConvTranspose1d(_ConvTranspose):
    """Compute the transpose of `Conv1d`: what gives its input's gradient."""

    _dims, _name = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTranspose):
    """Compute the transpose of `Conv2d`: what gives its input's gradient."""

    _dims, _name = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """Compute the transpose of `Conv3d`: what gives its input's gradient."""

    _dims, _name = 3, "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin):
    """Take `in_channels` from the first input."""

    _dims: ClassVar[int]

    def _wait(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Replace the parameters of no channels by those that are to be made."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        """Draw the parameters once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Any, *args: Any, **kwargs: Any) -> None:
        """Make the parameters for an input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        for name in ("weight", "bias"):
            held = getattr(self, name)
            if held is None and name == "bias":
                continue
            if not isinstance(held, UninitializedParameter):
                raise AssertionError(f"self.{name} must be an UninitializedParameter")
            held.materialize(self._weight_size() if name == "weight" else (self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Any) -> int:
        rank = self._get_num_spatial_dims() + 1
        if input.dim() not in (rank, rank + 1):
            raise RuntimeError(
                f"Expected {rank}D (unbatched) or {rank + 1}D (batched) input to "
                f"{self.__class__.__name__}, but got input of size: {input.shape}"
            )
        return input.shape[input.dim() - rank]

    def _get_num_spatial_dims(self) -> int:
        return self._dims


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device,
            dtype,
        )  # fmt: skip
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTranspose):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode, device, dtype,
        )  # fmt: skip
        self._wait(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
