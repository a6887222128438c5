"""PyTorch's `torch.nn.modules.linear`: linear and bilinear maps."""

from __future__ import annotations

import math
from typing import Any

from ..._core.grad_modes import no_grad
from ..._ops.creation.factories import empty
from .. import functional as F
from ..init import _calculate_fan_in_and_fan_out, kaiming_uniform_, uniform_
from ..parameter import Parameter, UninitializedParameter
from ._module.attributes import parameter_of
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Return the input; arguments are taken and ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Linear(Module):
    """Compute `input @ weight.T + bias`."""

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Any
    bias: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), **made))
        if bias:
            self.bias = Parameter(empty(out_features, **made))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within `1 / sqrt(in_features)`."""
        kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = _calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.linear(input, parameter_of(self, "weight"), parameter_of(self, "bias"))

    def extra_repr(self) -> str:
        """Tell the sizes."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` by another class, which dynamic quantization leaves alone."""


class Bilinear(Module):
    """Compute `input1 @ weight[k] @ input2 + bias[k]` for each output feature `k`."""

    __constants__ = ["in1_features", "in2_features", "out_features"]
    in1_features: int
    in2_features: int
    out_features: int
    weight: Any
    bias: Any

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), **made))
        if bias:
            self.bias = Parameter(empty(out_features, **made))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within `1 / sqrt(in1_features)`."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )
        bound = 1 / math.sqrt(self.weight.size(1))
        uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """Compute the layer."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Tell the sizes."""
        inputs = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{inputs}, out_features={self.out_features}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from its first input."""

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Make the parameters for an input."""
        features = input.shape[-1]
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = features
                self.weight.materialize((self.out_features, features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the weight was loaded
            if features != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {features} is not equal to in_features "
                    f"from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = features
