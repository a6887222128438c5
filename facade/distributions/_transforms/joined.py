"""Transforms that have another one for each part of a dimension, and that of a distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import cat, stack
from .. import constraints
from ..utils import _sum_rightmost, lazy_property
from .transform import Transform


def _need_transforms(tseq: Sequence[Any], cache_size: int) -> list[Any]:
    if not all(isinstance(t, Transform) for t in tseq):
        raise AssertionError("All elements of tseq must be Transform instances")
    return [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)


def _need_dim(value: Any, dim: int, name: str, shown: str) -> None:
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"dim {dim} out of range for {shown} with {value.dim()} dimensions")


class CatTransform(Transform):
    """Apply transforms to stretches of a dimension.

    Args:
      lengths: of the stretches, all 1 if it is not given.
    """

    transforms: list[Any]

    def __init__(
        self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:  # fmt: skip
        tseq = _need_transforms(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.transforms = tseq
        self.lengths = [1] * len(tseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(tseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(tseq)})"
            )
        self.dim = dim

    @lazy_property
    def event_dim(self) -> Any:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> Any:
        """The length of the dimension."""
        return sum(self.lengths)

    def _recached(self, cache_size: int) -> Any:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Any, name: str, shown: str = "tensor") -> list[Any]:
        _need_dim(value, self.dim, name, shown)
        size = value.size(self.dim)
        if size != self.length:
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal length {self.length}"
            )
        return list(value.split(self.lengths, self.dim))

    def _joined(self, value: Any, name: str, pick: Callable[[Any], Any]) -> Any:
        parts = zip(self.transforms, self._parts(value, name), strict=True)
        return cat([pick(t)(part) for t, part in parts], dim=self.dim)

    def _call(self, x: Any) -> Any:
        return self._joined(x, "x", lambda t: t)

    def _inverse(self, y: Any) -> Any:
        return self._joined(y, "y", lambda t: t.inv)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        found = []
        parts = self._parts(x, "x", "x"), self._parts(y, "y", "y")
        for t, of_x, of_y in zip(self.transforms, *parts, strict=True):
            own = t.log_abs_det_jacobian(of_x, of_y)
            if t.event_dim < self.event_dim:
                own = _sum_rightmost(own, self.event_dim - t.event_dim)
            found.append(own)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return cat(found, dim=dim) if dim < 0 else sum(found)

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Apply one transform to each index of a dimension."""

    transforms: list[Any]

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        tseq = _need_transforms(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.transforms = tseq
        self.dim = dim

    def _recached(self, cache_size: int) -> Any:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, value: Any, name: str, shown: str = "tensor") -> list[Any]:
        _need_dim(value, self.dim, name, shown)
        size = value.size(self.dim)
        if size != len(self.transforms):
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal len(transforms) "
                f"{len(self.transforms)}"
            )
        return list(value.unbind(self.dim))

    def _call(self, x: Any) -> Any:
        parts = zip(self.transforms, self._parts(x, "x"), strict=True)
        return stack([t(part) for t, part in parts], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        parts = zip(self.transforms, self._parts(y, "y"), strict=True)
        return stack([t.inv(part) for t, part in parts], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        parts = self._parts(x, "x", "x"), self._parts(y, "y", "y")
        found = [
            t.log_abs_det_jacobian(of_x, of_y)
            for t, of_x, of_y in zip(self.transforms, *parts, strict=True)
        ]
        return stack(found, dim=self.dim)

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """Map numbers to their probabilities, by the `cdf` of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def _recached(self, cache_size: int) -> Any:
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
