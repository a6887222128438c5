"""Constraints that hold for parts of a dimension, one each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import cat, stack
from .constraint import Constraint


def _need_constraints(cseq: Sequence[Any]) -> None:
    if not all(isinstance(c, Constraint) for c in cseq):
        raise AssertionError("All elements of cseq must be Constraint instances")


def _need_dim(value: Any, dim: int) -> None:
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"dim {dim} out of range for value with {value.dim()} dimensions")


class _Cat(Constraint):
    """Have one constraint for each stretch of a dimension."""

    def __init__(
        self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        _need_constraints(cseq)
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        _need_dim(value, self.dim)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return cat(checks, self.dim)


class _Stack(Constraint):
    """Have one constraint for each index of a dimension."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        _need_constraints(cseq)
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        _need_dim(value, self.dim)
        parts = value.unbind(self.dim)
        return stack([c.check(v) for v, c in zip(parts, self.cseq, strict=False)], self.dim)
