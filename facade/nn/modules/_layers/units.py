"""Linear units and their smooth kin as layers."""

from __future__ import annotations

from typing import Any

from ...._ops.creation.factories import empty
from ... import functional as _functional
from ...init import constant_
from ...parameter import Parameter
from ..module import Module

F: Any = _functional  # stubs of the op table know of no `inplace`


def also_inplace(said: str, inplace: bool) -> str:
    """Say what a layer was made with, and that it writes into its input where it does."""
    return ", ".join(filter(None, [said, "inplace=True" if inplace else ""]))


class _MayBeInplace(Module):
    """Hold whether the layer writes into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return also_inplace("", self.inplace)


class _WithAlpha(Module):
    """Hold the scale of an exponential."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return also_inplace(f"alpha={self.alpha}", self.inplace)


class ReLU(_MayBeInplace):
    """Compute `max(x, 0)`."""

    __constants__ = ["inplace"]

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.relu(input, inplace=self.inplace)


class SiLU(_MayBeInplace):
    """Compute `x * sigmoid(x)`."""

    __constants__ = ["inplace"]

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.silu(input, inplace=self.inplace)


class Mish(_MayBeInplace):
    """Compute `x * tanh(softplus(x))`."""

    __constants__ = ["inplace"]

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.mish(input, inplace=self.inplace)


class SELU(_MayBeInplace):
    """Compute the exponential linear unit that keeps mean 0 and variance 1."""

    __constants__ = ["inplace"]

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.selu(input, self.inplace)


class RReLU(Module):
    """Scale what is below 0, in training by slopes drawn between `lower` and `upper`."""

    __constants__ = ["lower", "upper", "inplace"]

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
        return also_inplace(f"lower={self.lower}, upper={self.upper}", self.inplace)


class LeakyReLU(Module):
    """Scale what is below 0 by `negative_slope`."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return also_inplace(f"negative_slope={self.negative_slope}", self.inplace)


class ELU(_WithAlpha):
    """Compute `alpha * (exp(x) - 1)` below 0."""

    __constants__ = ["alpha", "inplace"]

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_WithAlpha):
    """Compute `alpha * (exp(x / alpha) - 1)` below 0."""

    __constants__ = ["alpha", "inplace"]

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.celu(input, self.alpha, self.inplace)


class GLU(Module):
    """Gate the first half along `dim` by the sigmoid of the second."""

    __constants__ = ["dim"]

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

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return f"approximate={self.approximate!r}"


class PReLU(Module):
    """Scale what is below 0 by slopes that are learned: one, or one a channel."""

    __constants__ = ["num_parameters"]

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


class Softplus(Module):
    """Compute `log(1 + exp(beta * x)) / beta`, above `threshold / beta` the input itself."""

    __constants__ = ["beta", "threshold"]

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


class LogSigmoid(Module):
    """Compute the logarithm of the sigmoid."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.logsigmoid(input)
