"""LU factorization with pivots, what unpacks it, and solving by it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast
from ...program.op import Decorator, Fault, ops_with
from .checks import (  # fmt: skip
    batched,
    computes,
    need_float,
    need_kernel,
    need_pivots_of,
    need_same_dtype,
    need_solvable,
    need_square,
    need_two_dims,
    size,
)
from .linalg import LINALG, _singular, _t
from .solve import _info

op: Decorator = ops_with(steep=True)

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


def _check_lu_factor(
    A: Array, *, pivot: bool = True, name: str = "torch.linalg.lu_factor",  # noqa: N803
) -> list[Fault]:  # fmt: skip
    text = (
        "U[{order},{order}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )
    found = _singular(name, text, A, square=False)
    return [Fault(f.bad, RuntimeError, f.message, f.value) for f in found]


def _check_lu_factor_ex(
    A: Array, *, pivot: bool = True, check_errors: bool = False,  # noqa: N803
) -> list[Fault]:  # fmt: skip
    name = "torch.linalg.lu_factor_ex"
    return _check_lu_factor(A, pivot=pivot, name=name) if check_errors else []


def _need_lu(A: Array, pivot: bool) -> None:  # noqa: N803
    need_kernel("lu_cpu", A)
    if not pivot and A.size:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _factored(A: Array) -> Any:  # noqa: N803
    """Return JAX's factors, pivots and permutation; what is empty may have any dtype."""
    if computes(A.dtype):
        return lax.linalg.lu(A)
    lu, pivots, permutation = lax.linalg.lu(A.astype(np.float32))
    return lu.astype(A.dtype), pivots, permutation


@op(name="lu_factor", backward="LinalgLuFactorExBackward0", residuals=True,
    check=_check_lu_factor, saves={"LU": "*", "pivots": "*"}, **LINALG)  # fmt: skip
def lu_factor(A: Array, *, pivot: bool = True) -> LUFactor:  # noqa: N803
    """Compute LU factors in one matrix, and the rows swapped (counted from 1)."""
    need_two_dims("torch.lu_factor", A)
    _need_lu(A, pivot)
    lu, pivots, _ = _factored(A)
    return LUFactor(lu, _pivots(pivots))


@op(name="lu_factor_ex", backward="LinalgLuFactorExBackward0", residuals=True,
    check=_check_lu_factor_ex,
    saves={"LU": "*", "pivots": "*"}, **LINALG)  # fmt: skip
def lu_factor_ex(
    A: Array,
    *,
    pivot: bool = True,
    check_errors: bool = False,  # noqa: N803
) -> LUFactorEx:
    """Compute `lu_factor`, and 0 (or the zero pivot's number) for each matrix."""
    lu, pivots = lu_factor(A, pivot=pivot)
    zero = jnp.diagonal(lax.stop_gradient(lu), axis1=-2, axis2=-1) == 0
    info = jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0) if A.size else _info(A)
    return LUFactorEx(lu, pivots, info.astype(np.int32))


def _permutation(pivots: Array, shape: tuple[int, ...]) -> Array:
    """Return the rows' order of each matrix; pivots of another shape are read on through.

    Those that are there are the first matrices'; rows and matrices without pivots stay.
    """
    *batch, rows = shape
    pivots = (jnp.atleast_1d(pivots) - 1).astype(np.int32)[..., :rows]
    if pivots.shape[:-1] == tuple(batch):
        return lax.linalg.lu_pivots_to_permutation(pivots, rows)
    count = math.prod(batch)
    flat = pivots.reshape(-1, pivots.shape[-1])[:count]
    still = jnp.broadcast_to(jnp.arange(pivots.shape[-1], dtype=np.int32), flat.shape[1:])
    still = jnp.broadcast_to(still, (count - len(flat), *still.shape))
    order = lax.linalg.lu_pivots_to_permutation(jnp.concatenate([flat, still]), rows)
    return order.reshape(shape)


def _unpacked(lu: Array, permutation: Array) -> LU:
    rows, columns = lu.shape[-2:]
    k = min(rows, columns)
    lower = jnp.tril(lu[..., :, :k], -1) + jnp.eye(rows, k, dtype=lu.dtype)
    upper = jnp.triu(lu[..., :k, :])
    p = cast(permutation[..., None, :] == jnp.arange(rows)[:, None], lu.dtype)
    return LU(p, lower, upper)


@op(name="lu", backward="LinalgLuBackward0", residuals=True,
    saves={"P": "*", "L": "*", "U": "*"}, **LINALG)  # fmt: skip
def linalg_lu(A: Array, *, pivot: bool = True) -> LU:  # noqa: N803
    """Compute permutation, lower and upper triangular factors."""
    need_two_dims("linalg.lu", A)
    _need_lu(A, pivot)
    lu, _, permutation = _factored(A)
    return _unpacked(lu, permutation)


def _check_lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True,  # noqa: N803
    unpack_pivots: bool = True,
) -> list[Fault]:  # fmt: skip
    if not unpack_pivots:
        return []
    words = (
        "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly "
        "pass the result of lu_factor?"
    )
    bad = (LU_pivots < 1) | (LU_pivots > LU_data.shape[-2])
    return [Fault(bad, RuntimeError, words)]


@op(method=False, backward="LuUnpackBackward0", check=_check_lu_unpack)
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True,  # noqa: N803
    unpack_pivots: bool = True,
) -> Unpacked:  # fmt: skip
    """Turn `lu_factor`'s results into permutation, lower and upper triangular factors."""
    need_two_dims("torch.lu_unpack", LU_data)
    if unpack_pivots and LU_pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype."
            "\nNote: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    permutation = _permutation(LU_pivots, LU_data.shape[:-1])
    made = _unpacked(LU_data, permutation)
    none = jnp.zeros(0, LU_data.dtype)
    if not unpack_data:
        made = LU(made.P, none, none)
    return Unpacked(made.P if unpack_pivots else none, made.L, made.U)


def _lu_solved(lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Array:
    name = "linalg.lu_solve"
    need_float("torch.linalg.lu_solve", lu)
    need_same_dtype(name, LU=lu, B=b)
    if pivots.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    need_square("torch.linalg.lu_solve", lu)
    need_solvable(name, lu, b, left)
    if size(pivots, -1) != lu.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    need_pivots_of(name, "LU", lu, pivots)
    lu, b = batched(lu, b)
    need_kernel("linalg.lu_solve_cpu", b)
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


def _check_pivots(LU: Array, pivots: Array, B: Array, **_: Any) -> list[Fault]:  # noqa: N803
    if not B.size:
        return []
    words = "Pivots given to lu_solve must all be {} to {}. Did you properly pass the result of "
    words += "lu_factor?"
    low = words.format("greater or equal", 1)
    high = words.format("smaller or equal", "LU.size(-2)")
    bad = ((pivots < 1, low), (pivots > LU.shape[-2], high))
    return [Fault(found, RuntimeError, said) for found, said in bad]


def _check_older(input: Array, LU_data: Array, LU_pivots: Array) -> list[Fault]:  # noqa: N803
    return _check_pivots(LU_data, LU_pivots, input)


@op(name="lu_solve", backward="LinalgLuSolveBackward0", residuals=True, check=_check_pivots,
    saves={"LU": "*", "pivots": "*", "result": "*"}, **LINALG)  # fmt: skip
def linalg_lu_solve(
    LU: Array,
    pivots: Array,
    B: Array,
    *,
    left: bool = True,
    adjoint: bool = False,  # noqa: N803
) -> Array:
    """Solve for a matrix whose `lu_factor` this is."""
    return _lu_solved(LU, pivots, B, left, adjoint)


@op(backward="LinalgLuSolveBackward0", residuals=True, check=_check_older,
    saves={"self": "*", "LU_data": "*"})  # fmt: skip
def lu_solve(input: Array, LU_data: Array, LU_pivots: Array) -> Array:  # noqa: N803
    """Solve for a matrix whose LU factors these are."""
    return _lu_solved(LU_data, LU_pivots, input, True, False)
