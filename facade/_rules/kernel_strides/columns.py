"""Results that lie column by column, as LAPACK makes them: matrices of `linalg`."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.program import Slot

from ..strides.layouts import Strides
from ..strides.of_results import ALWAYS

# Which results of these ops do.
_FIRST = frozenset({0})
_COLUMNS = {
    "linalg.cholesky": _FIRST, "linalg.cholesky_ex": _FIRST, "cholesky_inverse": _FIRST,
    "cholesky_solve": _FIRST, "linalg.inv": _FIRST, "linalg.inv_ex": _FIRST,
    "linalg.solve": _FIRST, "linalg.solve_ex": _FIRST, "linalg.solve_triangular": _FIRST,
    "triangular_solve": frozenset({0, 1}), "linalg.qr": frozenset({0, 1}),
    "linalg.svd": frozenset({0, 2}), "svd": _FIRST, "linalg.eigh": frozenset({1}),
    "linalg.eig": frozenset({1}), "linalg.lu_factor": _FIRST, "linalg.lu_factor_ex": _FIRST,
    "linalg.lu_solve": _FIRST, "linalg.ldl_factor": _FIRST, "linalg.ldl_factor_ex": _FIRST,
    "linalg.ldl_solve": _FIRST, "geqrf": _FIRST, "linalg.householder_product": _FIRST,
    "ormqr": _FIRST, "linalg.lstsq": _FIRST,
}  # fmt: skip
_COLUMNS |= {
    "cholesky": _FIRST, "inverse": _FIRST, "qr": _COLUMNS["linalg.qr"], "lu_solve": _FIRST,
}  # fmt: skip

# With `left=False` these solve the transposed equation, and so make rows.
_BY_ROWS = frozenset({"linalg.solve", "linalg.solve_ex", "linalg.lu_solve"})


def factor_strides(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...] | None:
    """Lay out the results of one of these ops, None if all are row-major."""
    op = call.op
    places = _COLUMNS.get(op.qualified)
    if places is None:
        return None
    if op.qualified in _BY_ROWS and not _argument(call, "left", True):
        return None
    if op.qualified == "linalg.lstsq":
        return _solution(inputs[0].shape, avals)
    return tuple(
        column_major(a.shape) if k in places and len(a.shape) > 1 else None
        for k, a in enumerate(avals)
    )


ALWAYS |= dict.fromkeys(_COLUMNS, factor_strides)


def _solution(matrix: Any, avals: Any) -> tuple[Strides, ...] | None:
    """Lay out a least squares solution, which is part of what LAPACK writes to."""
    if len(avals[0].shape) != len(matrix):
        return None
    first = column_major(avals[0].shape, max(matrix[-2:]))
    return first, *[None] * (len(avals) - 1)


def _argument(call: Any, name: str, default: Any) -> Any:
    value = call.arguments.get(name, default)
    return default if isinstance(value, Slot) else value


def column_major(shape: Any, rows: int | None = None) -> Strides:
    """Find the strides of matrices that lie column by column, one matrix after the other.

    Args:
      rows: how many there are where these are the first of them.
    """
    strides = [*contiguous_strides((*shape[:-2], shape[-1], shape[-2] if rows is None else rows))]
    strides[-2:] = strides[:-3:-1]
    return None if tuple(strides) == contiguous_strides(tuple(shape)) else tuple(strides)
