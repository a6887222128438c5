"""Regions of values that parameters and samples may lie in.

A constraint says which values are inside: `check(value)` has the shape of the batch, the last
`event_dim` dimensions of `value` being one event. Nothing here looks at what a tensor holds, so
checks are recorded like any other op.
"""

from __future__ import annotations

from ._constraints.constraint import Constraint as Constraint
from ._constraints.constraint import MixtureSameFamilyConstraint as MixtureSameFamilyConstraint
from ._constraints.constraint import _Dependent as _Dependent
from ._constraints.constraint import _DependentProperty as _DependentProperty
from ._constraints.constraint import _IndependentConstraint as _IndependentConstraint
from ._constraints.constraint import is_dependent as is_dependent
from ._constraints.joined import _Cat as _Cat
from ._constraints.joined import _Stack as _Stack
from ._constraints.matrices import _CorrCholesky as _CorrCholesky
from ._constraints.matrices import _LowerCholesky as _LowerCholesky
from ._constraints.matrices import _LowerTriangular as _LowerTriangular
from ._constraints.matrices import _PositiveDefinite as _PositiveDefinite
from ._constraints.matrices import _PositiveSemidefinite as _PositiveSemidefinite
from ._constraints.matrices import _Square as _Square
from ._constraints.matrices import _Symmetric as _Symmetric
from ._constraints.numbers import _Boolean as _Boolean
from ._constraints.numbers import _GreaterThan as _GreaterThan
from ._constraints.numbers import _GreaterThanEq as _GreaterThanEq
from ._constraints.numbers import _HalfOpenInterval as _HalfOpenInterval
from ._constraints.numbers import _IntegerGreaterThan as _IntegerGreaterThan
from ._constraints.numbers import _IntegerInterval as _IntegerInterval
from ._constraints.numbers import _IntegerLessThan as _IntegerLessThan
from ._constraints.numbers import _Interval as _Interval
from ._constraints.numbers import _LessThan as _LessThan
from ._constraints.numbers import _Real as _Real
from ._constraints.vectors import _Multinomial as _Multinomial
from ._constraints.vectors import _OneHot as _OneHot
from ._constraints.vectors import _Simplex as _Simplex

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

for _found in list(globals().values()):
    if isinstance(_found, type) and issubclass(_found, Constraint):
        _found.__module__ = __name__  # where PyTorch keeps them, and pickles find them
is_dependent.__module__ = __name__
