"""Constraints checked by NumPy, where the values lie at rest in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.handle import Handle
from ..._host.rule import is_free
from ..._storage.host_arrays import data_of
from .. import constraints as c


def values_of(t: Any) -> Any:
    """The data of a tensor at rest, or a number; None if not known yet."""
    if not isinstance(t, Handle):
        return t if isinstance(t, (int, float, np.generic)) else None
    return data_of(t)


def _between(low: Callable[[Any, Any], Any] | None, high: Callable[[Any, Any], Any] | None,
             whole: bool = False) -> Callable[[Any, Any], Any]:  # fmt: skip
    def check(constraint: Any, x: Any) -> Any:
        inside = x % 1 == 0 if whole else np.True_
        for compare, name in ((low, "lower_bound"), (high, "upper_bound")):
            if compare is None:
                continue
            bound = values_of(getattr(constraint, name))
            if bound is None:
                return None
            inside = inside & compare(bound, x)
        return inside

    return check


def _independent(constraint: Any, x: Any) -> Any:
    result = _holds(constraint.base_constraint, x)
    if result is None or result.ndim < constraint.reinterpreted_batch_ndims:
        return None
    return result.reshape(*result.shape[: result.ndim - constraint.reinterpreted_batch_ndims], -1)


def _mixture(constraint: Any, x: Any) -> Any:
    return _holds(constraint.base_constraint, np.expand_dims(x, -1 - constraint.event_dim))


def _simplex(constraint: Any, x: Any) -> Any:
    return (x >= 0).all(-1) & (np.abs(x.sum(-1, dtype=x.dtype) - 1) < 1e-6)


def _lower(constraint: Any, x: Any) -> Any:
    return (np.tril(x) == x).all((-1, -2))


def _cholesky(constraint: Any, x: Any) -> Any:
    return _lower(constraint, x) & (np.diagonal(x, 0, -2, -1) > 0).all(-1)


def _definite(constraint: Any, x: Any) -> Any:
    if x.shape[-1] != x.shape[-2]:
        return np.False_
    if not np.isclose(x, np.swapaxes(x, -1, -2), atol=1e-6).all():
        return np.False_
    try:
        return np.isfinite(np.linalg.cholesky(x)).all()
    except np.linalg.LinAlgError:
        return np.False_


_CHECKS: dict[type, Callable[[Any, Any], Any]] = {
    type(c.boolean): lambda constraint, x: (x == 0) | (x == 1),
    type(c.one_hot): lambda _, x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1),
    type(c.real): lambda constraint, x: x == x,
    c.integer_interval: _between(np.less_equal, np.greater_equal, whole=True),
    c._IntegerLessThan: _between(None, np.greater_equal, whole=True),
    c._IntegerGreaterThan: _between(np.less_equal, None, whole=True),
    c.greater_than: _between(np.less, None),
    c.greater_than_eq: _between(np.less_equal, None),
    c.less_than: _between(None, np.greater),
    c.interval: _between(np.less_equal, np.greater_equal),
    c.half_open_interval: _between(np.less_equal, np.greater),
    c.independent: _independent,
    c.MixtureSameFamilyConstraint: _mixture,
    type(c.simplex): _simplex,
    type(c.lower_triangular): _lower,
    type(c.lower_cholesky): _cholesky,
    type(c.positive_definite): _definite,
}


def _holds(constraint: Any, x: Any) -> Any:
    check = _CHECKS.get(type(constraint))
    if check is None:
        return None
    try:
        return check(constraint, x)
    except (ValueError, TypeError, np.exceptions.AxisError):  # shapes that PyTorch words
        return None


def holds_at_rest(constraint: Any, value: Any, data: Any = None) -> bool | None:
    """Say at once whether all of a value is inside; None if a program has to say it.

    Args:
      data: the value itself, where the tensor is computed from what is at rest.
    """
    if not is_free():
        return None
    x = values_of(value) if data is None else data
    if x is None:
        return None
    with np.errstate(all="ignore"):
        inside = _holds(constraint, x)
    return None if inside is None else bool(np.all(inside))
