"""PyTorch's `torch.nn.modules.activation`: nonlinear functions as layers."""

from __future__ import annotations

import warnings
from typing import Any

from ..._creation import empty
from .. import functional as F
from ..init import constant_
from ..parameter import Parameter
from ._multihead_attention import MultiheadAttention as MultiheadAttention
from ._softmax import LogSoftmax as LogSoftmax
from ._softmax import Softmax as Softmax
from ._softmax import Softmax2d as Softmax2d
from ._softmax import Softmin as Softmin
from .module import Module

__all__ = [
    "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU",
    "Mish", "Hardswish", "ELU", "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU",
    "LogSigmoid", "Softplus", "Softshrink", "MultiheadAttention", "PReLU", "Softsign",
    "Tanhshrink", "Softmin", "Softmax", "Softmax2d", "LogSoftmax",
]  # fmt: skip


def _also_inplace(said: str, inplace: bool) -> str:
    """What a layer's line says, and that it writes into its input."""
    return ", ".join(filter(None, [said, "inplace=True" if inplace else ""]))


class Threshold(Module):
    """Replace what is not above `threshold` by `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace(f"threshold={self.threshold}, value={self.value}", self.inplace)


class ReLU(Module):
    """Compute `max(x, 0)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace("", self.inplace)


class RReLU(Module):
    """Scale what is below 0, in training by slopes drawn between `lower` and `upper`."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(Module):
    """Clamp to `[min_val, max_val]`."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        for name, value in (("min", min_value), ("max", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{name}_value` is deprecated and renamed to `{name}_val`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """Clamp to `[0, 6]`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace("", self.inplace)


class Sigmoid(Module):
    """Compute `1 / (1 + exp(-x))`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.sigmoid(input)


class Hardsigmoid(Module):
    """Compute `relu6(x + 3) / 6`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """Compute the hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.tanh(input)


class SiLU(Module):
    """Compute `x * sigmoid(x)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.silu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace("", self.inplace)


class Mish(Module):
    """Compute `x * tanh(softplus(x))`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.mish(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace("", self.inplace)


class Hardswish(Module):
    """Compute `x * relu6(x + 3) / 6`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardswish(input, self.inplace)


class ELU(Module):
    """Compute `alpha * (exp(x) - 1)` below 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace(f"alpha={self.alpha}", self.inplace)


class CELU(Module):
    """Compute `alpha * (exp(x / alpha) - 1)` below 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace(f"alpha={self.alpha}", self.inplace)


class SELU(Module):
    """Compute the exponential linear unit that keeps mean 0 and variance 1."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.selu(input, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace("", self.inplace)


class GLU(Module):
    """Gate the first half along `dim` by the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return f"dim={self.dim}"


class GELU(Module):
    """Compute `x` times the normal distribution function of `x`."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Replace what is within `lambd` of 0 by 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return str(self.lambd)


class LeakyReLU(Module):
    """Scale what is below 0 by `negative_slope`."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return _also_inplace(f"negative_slope={self.negative_slope}", self.inplace)


class LogSigmoid(Module):
    """Compute the logarithm of the sigmoid."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.logsigmoid(input)


class Softplus(Module):
    """Compute `log(1 + exp(beta * x)) / beta`, above `threshold / beta` the input itself."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Move what is further than `lambd` from 0 towards 0 by `lambd`, the rest to 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return str(self.lambd)


class PReLU(Module):
    """Scale what is below 0 by slopes that are learned: one, or one a channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to `init`."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """Compute `x / (1 + abs(x))`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softsign(input)


class Tanhshrink(Module):
    """Compute `x - tanh(x)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.tanhshrink(input)
