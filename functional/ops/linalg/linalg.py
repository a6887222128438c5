"""Decompositions and solvers of `torch.linalg`, batched over leading dims."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import is_complex
from ...program.op import Decorator, Fault, ops_with
from .checks import (  # fmt: skip
    batched,
    is_vector_rhs,
    need_equal_sides,
    need_float,
    need_kernel,
    need_same_dtype,
    need_solvable,
    need_square,
)

op: Decorator = ops_with(steep=True)

Array = jax.Array

#: What `torch.linalg` functions have in common: they are not methods.
LINALG: dict[str, Any] = {"namespace": "linalg", "method": False}


class LinAlgError(RuntimeError):
    """A matrix without the property that an op needs, `torch.linalg.LinAlgError`."""


# PyTorch's own names for it.
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "leafax._C"


class QR(NamedTuple):
    Q: Array
    R: Array


class OldQR(NamedTuple):
    Q: Array
    R: Array


class SVD(NamedTuple):
    U: Array
    S: Array
    Vh: Array


class Eigh(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class Slogdet(NamedTuple):
    sign: Array
    logabsdet: Array


class OldSlogdet(NamedTuple):
    sign: Array
    logabsdet: Array


def _t(x: Array) -> Array:
    x = jnp.swapaxes(x, -1, -2)
    return jnp.conj(x) if is_complex(x.dtype) else x


# Data-dependent errors -------------------------------------------------------------------------


def _failures(name: str, text: str, failed: Array, order: Array, size: int) -> list[Fault]:
    """Return faults for the first matrix of a batch that failed, with `{order}` in the text.

    A fault carries one number, so those of a batch come one for each order.
    """
    if not failed.ndim:
        return [Fault(failed, LinAlgError, f"{name}: {text.format(order='{value}')}", order)]
    failed, order = failed.reshape(-1), order.reshape(-1)
    at = jnp.arange(failed.size)
    first = failed & (at == jnp.argmax(failed))
    return [
        Fault(
            first & (order == k), LinAlgError,
            f"{name}: (Batch element {{value}}): {text.format(order=k)}", at,
        )
        for k in range(1, size + 1)
    ]  # fmt: skip


def _singular(name: str, text: str, x: Array, square: bool = True) -> list[Fault]:
    """Return faults for matrices with a pivot of 0, if they are `square`: the op refuses others."""
    if x.ndim < 2 or square and x.shape[-1] != x.shape[-2] or not x.size:
        return []
    zero = jnp.diagonal(lax.linalg.lu(x)[0], axis1=-2, axis2=-1) == 0
    numbered = "{order}" in text
    order = jnp.argmax(zero, axis=-1) + 1 if numbered else jnp.ones(zero.shape[:-1], jnp.int64)
    return _failures(name, text, jnp.any(zero, axis=-1), order, zero.shape[-1] if numbered else 1)


def _check_inv(input: Array, name: str = "linalg.inv") -> list[Fault]:
    text = (
        "The diagonal element {order} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )
    return _singular(name, text, input)


def _check_matrix_inv(A: Array) -> list[Fault]:  # noqa: N803
    return _check_inv(A)


def _check_power(input: Array, n: int) -> list[Fault]:
    return _check_inv(input) if n < 0 else []


def _by_columns(x: Array) -> tuple[Array, Array]:
    """Factor as far as LAPACK comes, and return the order of the first bad leading minor.

    At a pivot that is not positive LAPACK stops: that is left in the factor, and what is to the
    right of its column is left as it was. The order is 0 where there is no such pivot.
    """
    below = jnp.arange(x.shape[-1])

    def eliminate(k: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rest, factor, found = state
        pivot = jnp.real(rest[..., k, k])
        good, going = (pivot > 0)[..., None], (found == 0)[..., None]
        column = rest[..., :, k] / jnp.where(pivot > 0, pivot, 1)[..., None]
        root = jnp.sqrt(jnp.where(pivot > 0, pivot, 1))[..., None]
        stopped = jnp.where(below == k, pivot[..., None], factor[..., :, k])
        whole = jnp.where(below == k, root, jnp.where(below > k, column * root, 0))
        kept = jnp.where(good, whole, stopped)
        factor = factor.at[..., :, k].set(jnp.where(going, kept, factor[..., :, k]))
        rest -= column[..., :, None] * jnp.conj(rest[..., None, :, k])
        return rest, factor, jnp.where(~(pivot > 0) & (found == 0), k + 1, found)

    start = (x, jnp.tril(x), jnp.zeros(x.shape[:-2], jnp.int64))
    return lax.fori_loop(0, x.shape[-1], eliminate, start)[1:]


def as_far_as_it_goes(lower: Array) -> tuple[Array, Array]:
    """Factor as `_by_columns` matrices that may have a factor: slow only where one has none."""
    factor = lax.linalg.cholesky(lower, symmetrize_input=False)
    failed = jnp.any(~jnp.isfinite(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)

    def stopped(m: Array) -> tuple[Array, Array]:
        part, order = _by_columns(m)
        return jnp.where(failed[..., None, None], part, factor), jnp.where(failed, order, 0)

    def whole(m: Array) -> tuple[Array, Array]:
        return factor, jnp.zeros(m.shape[:-2], jnp.int64)

    found: tuple[Array, Array] = lax.cond(jnp.any(failed), stopped, whole, lower)
    return found


def _cholesky_failures(name: str, x: Array) -> list[Fault]:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or not x.size:
        return []
    order = as_far_as_it_goes(jnp.tril(x) + _t(jnp.tril(x, -1)))[1]
    text = (
        "The factorization could not be completed because the input is not positive-definite (the "
        "leading minor of order {order} is not positive-definite)."
    )
    return _failures(name, text, order > 0, order, x.shape[-1])


def _check_solve(A: Array, B: Array, left: bool = True) -> list[Fault]:  # noqa: N803
    return _unsolvable("torch.linalg.solve", A)


def _unsolvable(name: str, x: Array) -> list[Fault]:
    return _singular(name, "The solver failed because the input matrix is singular.", x)


# Inverses and determinants ---------------------------------------------------------------------


@op(name="inv", **LINALG, backward="LinalgInvExBackward0",
    saves={"inverse": "*"}, check=_check_matrix_inv, residuals=True)  # fmt: skip
def linalg_inv(A: Array) -> Array:  # noqa: N803
    """Invert square matrices."""
    need_square("linalg.inv", A, low=False)
    return jnp.linalg.inv(A)


@op(backward="LinalgInvExBackward0", saves={"inverse": "*"}, check=_check_inv, residuals=True)
def inverse(input: Array) -> Array:
    """Invert square matrices."""
    return linalg_inv(input)


@op(name="det", **LINALG, backward="LinalgDetBackward0",
    saves={"A": "*", "result": "*"}, residuals=True)  # fmt: skip
def linalg_det(A: Array) -> Array:  # noqa: N803
    """Compute the determinant of square matrices."""
    need_square("linalg.det", A)
    need_kernel("lu_cpu", A)
    return jnp.linalg.det(A) if A.size else jnp.ones(A.shape[:-2], A.dtype)


@op(backward="LinalgDetBackward0", saves={"result": "*"}, residuals=True)
def det(input: Array) -> Array:
    """Compute the determinant of square matrices."""
    return linalg_det(input)


@op(name="slogdet", **LINALG, backward="LinalgSlogdetBackward0",
    saves={"A": "*", "sign": "*"}, residuals=True)  # fmt: skip
def linalg_slogdet(A: Array) -> Slogdet:  # noqa: N803
    """Compute sign and logarithm of the absolute determinant."""
    need_square("linalg.slogdet", A, low=False)
    return Slogdet(*jnp.linalg.slogdet(A))


@op(backward="LinalgSlogdetBackward0", saves={"self": "*", "sign": "*"}, residuals=True)
def slogdet(input: Array) -> OldSlogdet:
    """Compute sign and logarithm of the absolute determinant."""
    return OldSlogdet(*linalg_slogdet(input))


@op(backward="WhereBackward0", saves={"self": "*"}, residuals=True)
def logdet(input: Array) -> Array:
    """Compute the logarithm of the determinant; NaN where that is negative."""
    need_square("logdet", input, low=False)
    sign, log = linalg_slogdet(input)
    return jnp.where(sign < 0, jnp.nan, log) if not is_complex(input.dtype) else log + jnp.log(sign)


@op(name="solve", **LINALG, backward="LinalgSolveExBackward0",
    saves={"A": "*", "result": "*"}, check=_check_solve, residuals=True)  # fmt: skip
def solve(A: Array, B: Array, left: bool = True) -> Array:  # noqa: N803
    """Solve `A X = B`, or `X A = B`; `B` may hold vectors."""
    need_float("linalg.solve", A)
    need_same_dtype("linalg.solve", A=A, B=B)
    vector = is_vector_rhs(A, B)
    columns = B[..., None] if vector else B
    need_solvable("linalg.solve", A, columns, left)
    full = batched(A, columns)
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    need_kernel("lu_cpu", A)
    if left:
        out = jnp.linalg.solve(*full)
    else:
        out = jnp.swapaxes(jnp.linalg.solve(*(jnp.swapaxes(x, -1, -2) for x in full)), -1, -2)
    return out[..., 0] if vector else out


@op(name="matrix_power", **LINALG, backward="MmBackward0",
    saves={"A": "*"}, aliases=(), check=_check_power)  # fmt: skip
def linalg_matrix_power(A: Array, n: int) -> Array:  # noqa: N803
    """Multiply a square matrix `n` times with itself; its inverse for negative `n`."""
    need_equal_sides("linalg.matrix_power", A)
    if n < 0:
        need_float("linalg.inv", A, low=False)
    return jnp.linalg.matrix_power(A, n)


@op(backward="MmBackward0", saves={"self": "*"}, check=_check_power)
def matrix_power(input: Array, n: int) -> Array:
    """Multiply a square matrix `n` times with itself; its inverse for negative `n`."""
    return linalg_matrix_power(input, n)
