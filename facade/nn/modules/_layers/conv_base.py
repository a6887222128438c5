"""Base of convolutions of all ranks: their settings, weights and names in errors."""

from __future__ import annotations

import math
from typing import Any

from ...._core.grad_modes import no_grad
from ...._core.memory_format import contiguous_format
from ...._ops.creation.factories import empty, empty_like
from ...init import _calculate_fan_in_and_fan_out, kaiming_uniform_, uniform_
from ...parameter import Parameter
from ..module import Module
from ..utils import _reverse_repeat_tuple, _single

_PADDINGS = {"same", "valid"}
_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels", "kernel_size",
    ]  # fmt: skip
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Any
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Any
    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, transposed: bool, output_padding: Any, groups: int, bias: bool,
        padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice: Any
        if isinstance(padding, str):
            self._reversed_padding_repeated_twice = _around(padding, kernel_size, dilation)
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        made = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(self._weight_size(), **made))
        if bias:
            self.bias = Parameter(empty(out_channels, **made))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_size(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within `1 / sqrt(fan_in)`."""
        with no_grad():
            if self.weight.is_contiguous():
                kaiming_uniform_(self.weight, a=math.sqrt(5))
            else:  # the same numbers in another layout
                drawn = empty_like(self.weight, memory_format=contiguous_format)
                self.weight.copy_(kaiming_uniform_(drawn, a=math.sqrt(5)))
            if self.bias is not None:
                fan_in, _ = _calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
                uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Tell the channels, the sizes, and what else is not the default."""
        shown = [f"{self.in_channels}, {self.out_channels}"]
        shown += [f"kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * len(self.padding):
            shown.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            shown.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            shown.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            shown.append(f"groups={self.groups}")
        if self.bias is None:
            shown.append("bias=False")
        if self.padding_mode != "zeros":
            shown.append(f"padding_mode={self.padding_mode}")
        return ", ".join(shown)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")  # as before there was an argument


def _check(
    in_channels: int, out_channels: int, stride: Any, padding: Any, groups: int, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in _PADDINGS:
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {_PADDINGS}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        raise ValueError(f"padding_mode must be one of {_MODES}, but got {padding_mode=}")


def _around(padding: str, kernel_size: Any, dilation: Any) -> list[int]:
    """Return the numbers that a padding by name stands for, the last dim's first."""
    both: list[int] = []
    for d, k in zip(reversed(dilation), reversed(kernel_size), strict=True):
        total = d * (k - 1) if padding == "same" else 0
        both += [total // 2, total - total // 2]
    return both


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, transposed: bool, output_padding: Any, groups: int, bias: bool,
        padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {self.__class__.__name__}'
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
            output_padding, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(
        self, input: Any, output_size: Any, stride: Any, padding: Any, kernel_size: Any,
        num_spatial_dims: int, dilation: Any = None,
    ) -> Any:  # fmt: skip
        """Work out the padding of one side that gives the size asked for."""
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        outer = 2 if input.dim() == n + 2 else 1
        if len(output_size) == outer + n:
            output_size = output_size[outer:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{outer + n} elements (got {len(output_size)})"
            )
        gaps = (1,) * n if dilation is None else dilation
        least = [
            (input.size(d + outer) - 1) * stride[d] - 2 * padding[d]
            + gaps[d] * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]  # fmt: skip
        most = [least[d] + stride[d] - 1 for d in range(n)]
        if any(not a <= s <= b for a, s, b in zip(least, output_size, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} "
                f"to {most} (for an input of {input.size()[2:]})"
            )
        return [s - a for s, a in zip(output_size, least, strict=True)]
