"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import as_tensor, full
from ._families.half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """Draw the absolute value of a Cauchy number."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        scale = self.scale
        return full(self._extended_shape(), math.inf, dtype=scale.dtype, device=scale.device)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        scale = self.scale
        return super().log_prob(as_tensor(value, dtype=scale.dtype, device=scale.device))
