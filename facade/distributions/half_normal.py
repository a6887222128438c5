"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from ._families.half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """Draw the absolute value of a normal number with mean 0."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
