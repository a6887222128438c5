"""Functions that saturate or cut off, as layers."""

from __future__ import annotations

import warnings
from typing import Any

from ... import functional as _functional
from ..module import Module
from .units import also_inplace

F: Any = _functional  # stubs of the op table know of no `inplace`


class Threshold(Module):
    """Replace what is not above `threshold` by `value`."""

    __constants__ = ["threshold", "value", "inplace"]

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
        return also_inplace(f"threshold={self.threshold}, value={self.value}", self.inplace)


class Hardtanh(Module):
    """Clamp to `[min_val, max_val]`."""

    __constants__ = ["min_val", "max_val", "inplace"]

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
        return also_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


class ReLU6(Hardtanh):
    """Clamp to `[0, 6]`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return also_inplace("", self.inplace)


class Sigmoid(Module):
    """Compute `1 / (1 + exp(-x))`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.sigmoid(input)


class Hardsigmoid(Module):
    """Compute `relu6(x + 3) / 6`."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """Compute `x * relu6(x + 3) / 6`."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardswish(input, self.inplace)


class Tanh(Module):
    """Compute the hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.tanh(input)


class Softsign(Module):
    """Compute `x / (1 + abs(x))`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softsign(input)


class Hardshrink(Module):
    """Replace what is within `lambd` of 0 by 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return str(self.lambd)


class Softshrink(Module):
    """Move what is further than `lambd` from 0 towards 0 by `lambd`, the rest to 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Say what the layer was made with."""
        return str(self.lambd)


class Tanhshrink(Module):
    """Compute `x - tanh(x)`."""

    def forward(self, input: Any) -> Any:
        """Compute the layer."""
        return F.tanhshrink(input)
