"""Regions of values that parameters and samples may lie in.

A constraint says which values are inside: `check(value)` has the shape of the batch, the last
`event_dim` dimensions of `value` being one event. Nothing here looks at what a tensor holds, so
checks are recorded like any other op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import all as _all
from .. import bool as _bool
from .. import cat as _cat
from .. import finfo, full, isclose, linalg
from .. import stack as _stack

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "half_open_interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_semidefinite",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """Say which values are inside a region.

    Attributes:
      is_discrete: the region is discrete.
      event_dim: how many of the last dimensions are one event.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Return a bool tensor, one entry an event: True where the event is inside."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


class _Dependent(Constraint):
    """Stand for a region that depends on other values."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Tell whether a constraint is a `dependent` one."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """Be a property whose value is a constraint: on the class itself, a dependent one."""

    def __init__(
        self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:  # fmt: skip
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _need_constraint(base: Any) -> None:
    if not isinstance(base, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(base).__name__}")


def _all_of_rest(result: Any, kept: int) -> Any:
    return result.reshape(result.shape[:kept] + (-1,)).all(-1)


class _IndependentConstraint(Constraint):
    """Take some dimensions of the batch into the event: all of them must be inside."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        _need_constraint(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int, got "
                f"{type(reinterpreted_batch_ndims).__name__}"
            )
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of_rest(result, result.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        name = self.__class__.__name__[1:]
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that satisfy a constraint for every component of a mixture."""

    def __init__(self, base_constraint: Any) -> None:
        _need_constraint(base_constraint)
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of_rest(result, value.dim() - self.event_dim)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Bounded(Constraint):
    """Hold the bounds that a subclass names, and show them."""

    def __repr__(self) -> str:
        bounds = [(k, getattr(self, k, None)) for k in ("lower_bound", "upper_bound")]
        shown = ", ".join(f"{k}={v}" for k, v in bounds if v is not None)
        return f"{self.__class__.__name__[1:]}({shown})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # false for NaN


class _GreaterThan(_Above):
    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Below):
    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return _all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        diagonal = value.diagonal(dim1=-2, dim2=-1)
        return (value.tril() == value).all(-1).all(-1) & (diagonal > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        # A row's norm is off by rounding, which grows with its length.
        tol = finfo(value.dtype).eps * value.size(-1) * 10
        norms = linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & (norms - 1.0).abs().le(tol).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        fits = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], fits, dtype=_bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & linalg.cholesky_ex(value).info.eq(0)


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
        return _cat(checks, self.dim)


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
        return _stack([c.check(v) for v, c in zip(parts, self.cseq, strict=False)], self.dim)


dependent: _Dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: Constraint = _Boolean()
one_hot: Constraint = _OneHot()
nonnegative_integer: Constraint = _IntegerGreaterThan(0)
positive_integer: Constraint = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive: Constraint = _GreaterThan(0.0)
nonnegative: Constraint = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval: Constraint = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: Constraint = _Simplex()
lower_triangular: Constraint = _LowerTriangular()
lower_cholesky: Constraint = _LowerCholesky()
corr_cholesky: Constraint = _CorrCholesky()
square: Constraint = _Square()
symmetric: Constraint = _Symmetric()
positive_semidefinite: Constraint = _PositiveSemidefinite()
positive_definite: Constraint = _PositiveDefinite()
cat = _Cat
stack = _Stack
