"""Least squares."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import finfo, real_of, scalar_name
from ...program.op import Decorator, ops_with
from ..shape import dimensions
from .checks import is_vector_rhs, need_dims, need_epsilon, need_kernel
from .linalg import LINALG
from .pinv import linalg_pinv
from .spectra import matrix_rank

Array = jax.Array


op: Decorator = ops_with(steep=True)


class Lstsq(NamedTuple):
    solution: Array
    residuals: Array
    rank: Array
    singular_values: Array


@op(
    name="lstsq", backward="LinalgLstsqBackward0", residuals=True, constant_outputs=(3,),
    saves={"self": "*", "b": "*", "solution": "*"}, **LINALG,
)  # fmt: skip
def lstsq(input: Array, b: Array, rcond: Any = None, *, driver: str | None = None) -> Lstsq:
    """Solve `input @ X = b` by least squares, with the singular values above `rcond`."""
    _lstsq_errors(input, b, rcond, driver)
    driver = driver or "gelsy"
    vector = is_vector_rhs(input, b)
    b = b[..., None] if vector else b
    # As PyTorch takes as many dims of `b`: where `b` is one matrix for all, its rows are counted.
    batch = dimensions.broadcast_shapes(input.shape[:-2], b.shape[: input.ndim - 2])
    need_kernel("linalg_lstsq_cpu", input, empty=True)
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    tolerance = _tolerance(input, rcond, driver)
    x = _least_squares(input, b, tolerance)
    none = jnp.zeros(0, real_of(input.dtype))
    rows, columns = input.shape[-2:]
    residuals = none
    if rows > columns and driver != "gelsy":
        off = input @ x - b
        residuals = (off * jnp.conj(off)).real.sum(-2)
    rank = jnp.zeros(0, np.int64)
    if driver != "gels":
        rank = matrix_rank(lax.stop_gradient(input), rtol=tolerance)
    values = none
    if driver in ("gelsd", "gelss"):
        values = jnp.linalg.svd(lax.stop_gradient(input), compute_uv=False)
    return Lstsq(x[..., 0] if vector else x, residuals, rank, values)


def _tolerance(A: Array, rcond: float | None, driver: str) -> float:  # noqa: N803
    """Return the part of the largest singular value that counts as 0, as LAPACK reads `rcond`."""
    epsilon = float(finfo(A.dtype).eps)
    if driver == "gels":  # it takes each matrix for one of full rank
        return 0.0
    if rcond is None:
        return epsilon * max(A.shape[-2:])
    if driver == "gelsy":  # the largest always counts
        return min(max(rcond, 0.0), 1 - epsilon)
    if rcond < 0 or driver == "gelsd" and not 0 < rcond < 1:
        return epsilon
    return rcond


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _least_squares(A: Array, b: Array, tolerance: float) -> Array:  # noqa: N803
    return linalg_pinv(A, rtol=tolerance) @ b


@_least_squares.defjvp
def _least_squares_jvp(tolerance: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    # PyTorch's gradient is that of the pseudo-inverse by its own tolerance, whatever `rcond` was.
    along = jax.jvp(lambda a, b: linalg_pinv(a) @ b, primals, tangents)[1]
    return _least_squares(*primals, tolerance), along


def _lstsq_errors(A: Array, B: Array, rcond: Any, driver: str | None) -> None:  # noqa: N803
    name = "torch.linalg.lstsq"
    need_dims(name, "input", A)
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{scalar_name(A.dtype)} and other's dtype {scalar_name(B.dtype)}"
        )
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            "other.dim()) <= 1"
        )
    side = -1 if is_vector_rhs(A, B) else -2
    if A.shape[-2] != B.shape[side]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if rcond is None:
        need_epsilon(A)
