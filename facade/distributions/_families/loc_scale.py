"""Distributions that are given a location and a scale."""

from __future__ import annotations

from typing import Any

from .. import constraints
from ..distribution import Distribution, batch_shape_of
from ..utils import broadcast_all


class LocScale(Distribution):
    """Hold `loc` and `scale` in the shape of the batch."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        batch_shape = batch_shape_of(loc, scale, expanded=self.loc)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc
