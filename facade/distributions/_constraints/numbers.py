"""Regions of numbers: bounds, integers and bools."""

from __future__ import annotations

from typing import Any

from .constraint import Constraint


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


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
