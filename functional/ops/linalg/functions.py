"""Functions of one matrix or vector: exponential, powers, diagonal."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy import linalg as scipy_linalg

from ...program.dtypes import cast, is_integral, scalar_name
from ...program.op import Decorator, ops_with
from ..nn.checks import wide
from ..shape.slices import diagonal
from .checks import computes, need_square
from .linalg import LINALG

op: Decorator = ops_with(steep=True)

Array = jax.Array


@op(name="matrix_exp", aliases=(), backward="LinalgMatrixExpBackward0", residuals=True,
    saves={"self": "*"})  # fmt: skip
def matrix_exp(input: Array) -> Array:
    """Compute the matrix exponential."""
    need_square("linalg.matrix_exp", input)
    return cast(scipy_linalg.expm(wide(input)), input.dtype) if input.size else input


@op(name="matrix_exp", backward="LinalgMatrixExpBackward0", residuals=True, saves={"self": "*"},
    **LINALG)  # fmt: skip
def linalg_matrix_exp(A: Array) -> Array:  # noqa: N803
    """Compute the matrix exponential."""
    return matrix_exp(A)


@op(name="vander", backward="CumprodBackward0", **LINALG)
def vander(x: Array, *, N: int | None = None) -> Array:  # noqa: N803
    """Compute powers of `x`, 0 to `N - 1`, along a new last dim."""
    if not is_integral(x.dtype) and not computes(x.dtype) or x.dtype == bool:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            + scalar_name(x.dtype)
        )
    if is_integral(x.dtype):
        x = x.astype(jnp.int64)
    x = x.reshape(1) if x.ndim == 0 else x
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    return jnp.stack([jnp.ones_like(x), *_powers(x, n - 1)], -1)


def _powers(x: Array, count: int) -> list[Array]:
    made = [x]
    while len(made) < count:
        made.append(made[-1] * x)
    return made


@op(name="diagonal", backward="DiagonalBackward0", **LINALG)
def linalg_diagonal(A: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:  # noqa: N803
    """View the diagonals of the last two dims."""
    return diagonal(A, offset, dim1, dim2)
