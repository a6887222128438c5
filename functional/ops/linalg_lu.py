"""LU factorization with pivots, what unpacks it, and solving by it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._dtypes import cast
from .._op import Fault, op
from .linalg import LINALG, _need_float, _need_matrix, _singular, _t
from .linalg_solve import _batched, _info

Array = jax.Array


class LUFactor(NamedTuple):
    LU: Array
    pivots: Array


class LUFactorEx(NamedTuple):
    LU: Array
    pivots: Array
    info: Array


class LU(NamedTuple):
    P: Array
    L: Array
    U: Array


class Unpacked(NamedTuple):
    P: Array
    L: Array
    U: Array


def _pivots(permutation_free: Array) -> Array:
    return (permutation_free + 1).astype(np.int32)


def _check_lu_factor(A: Array, *, pivot: bool = True) -> list[Fault]:  # noqa: N803
    text = (
        "U[{order},{order}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )
    return _singular("torch.linalg.lu_factor", text, A)


@op(name="lu_factor", backward="LinalgLuFactorExBackward0", residuals=True,
    check=_check_lu_factor, saves={"LU": "*", "pivots": "*"}, **LINALG)  # fmt: skip
def lu_factor(A: Array, *, pivot: bool = True) -> LUFactor:  # noqa: N803
    """LU factors in one matrix, and the rows swapped (counted from 1)."""
    _need_matrix("linalg.lu_factor", A)
    _need_float("linalg.lu_factor", A)
    lu, pivots, _ = lax.linalg.lu(A)
    return LUFactor(lu, _pivots(pivots))


@op(name="lu_factor_ex", backward="LinalgLuFactorExBackward0", residuals=True,
    saves={"LU": "*", "pivots": "*"}, **LINALG)  # fmt: skip
def lu_factor_ex(
    A: Array,
    *,
    pivot: bool = True,
    check_errors: bool = False,  # noqa: N803
) -> LUFactorEx:
    """`lu_factor`, and 0 (or the zero pivot's number) for each matrix."""
    lu, pivots = lu_factor(A)
    zero = jnp.diagonal(lax.stop_gradient(lu), axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0) if A.size else _info(A)
    return LUFactorEx(lu, pivots, info.astype(np.int32))


def _unpacked(lu: Array, permutation: Array) -> LU:
    rows, columns = lu.shape[-2:]
    k = min(rows, columns)
    lower = jnp.tril(lu[..., :, :k], -1) + jnp.eye(rows, k, dtype=lu.dtype)
    upper = jnp.triu(lu[..., :k, :])
    p = cast(permutation[..., None, :] == jnp.arange(rows)[:, None], lu.dtype)
    return LU(p, lower, upper)


@op(name="lu", backward="LinalgLuBackward0", residuals=True, constant_outputs=(0,),
    saves={"P": "*", "L": "*", "U": "*"}, **LINALG)  # fmt: skip
def linalg_lu(A: Array, *, pivot: bool = True) -> LU:  # noqa: N803
    """Permutation, lower and upper triangular factors."""
    _need_matrix("linalg.lu", A)
    _need_float("linalg.lu", A)
    lu, _, permutation = lax.linalg.lu(A)
    return _unpacked(lu, permutation)


@op(method=False, backward="LuUnpackBackward0", constant_outputs=(0,))
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True,  # noqa: N803
    unpack_pivots: bool = True,
) -> Unpacked:  # fmt: skip
    """`lu_factor`'s results as permutation, lower and upper triangular factors."""
    permutation = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, LU_data.shape[-2])
    made = _unpacked(LU_data, permutation)
    none = jnp.zeros(0, LU_data.dtype)
    if not unpack_data:
        made = LU(made.P, none, none)
    return Unpacked(made.P if unpack_pivots else none, made.L, made.U)


def _lu_solved(lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Array:
    lu, b = _batched(lu, b)
    if not b.size:
        return b
    batch = b.shape[:-2]
    permutation = lax.linalg.lu_pivots_to_permutation(pivots - 1, lu.shape[-1])
    permutation = jnp.broadcast_to(permutation, (*batch, lu.shape[-1]))
    p, lower, upper = _unpacked(lu, permutation)
    whole = p @ lower @ upper
    whole = _t(whole) if adjoint else whole
    if left:
        return jnp.linalg.solve(whole, b)
    return jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(whole, -1, -2), jnp.swapaxes(b, -1, -2)),
                        -1, -2)  # fmt: skip


@op(name="lu_solve", backward="LinalgLuSolveBackward0", residuals=True,
    saves={"LU": "*", "pivots": "*", "result": "*"}, **LINALG)  # fmt: skip
def linalg_lu_solve(
    LU: Array,
    pivots: Array,
    B: Array,
    *,
    left: bool = True,
    adjoint: bool = False,  # noqa: N803
) -> Array:
    """The solution for a matrix whose `lu_factor` this is."""
    return _lu_solved(LU, pivots, B, left, adjoint)


@op(backward="LinalgLuSolveBackward0", residuals=True, saves={"self": "*", "LU_data": "*"})
def lu_solve(input: Array, LU_data: Array, LU_pivots: Array) -> Array:  # noqa: N803
    """The solution for a matrix whose LU factors these are."""
    return _lu_solved(LU_data, LU_pivots, input, True, False)
