"""The pseudo-inverse, by its tolerances."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import finfo, is_complex, real_of, scalar_name
from ...program.op import Decorator, Fault, ops_with
from .checks import computes, need_equal_sides
from .decompositions import eigh, svd_failures
from .linalg import LINALG, _t

op: Decorator = ops_with(steep=True)

Array = jax.Array


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _pinv(hermitian: bool, x: Array, atol: Array, rtol: Array) -> Array:
    """Invert by singular values, or by eigenvalues of one triangle where JAX takes both."""
    if hermitian:
        values, right = eigh(x)
        left = right
    else:
        left, values, vh = jnp.linalg.svd(x, full_matrices=False)
        right = _t(vh)
    sizes = jnp.abs(values)
    limit = jnp.maximum(atol, rtol * sizes.max(-1))
    kept = sizes > limit[..., None]
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)
    return (right * inverse[..., None, :]) @ _t(left)


@_pinv.defjvp
def _pinv_jvp(hermitian: bool, primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Any:
    # Golub and Pereyra's formula for any matrix, which PyTorch uses here too: it reads all of x.
    x, dx = primals[0], tangents[0]
    p = _pinv(hermitian, *primals)
    rows, columns = (jnp.eye(n, dtype=x.dtype) for n in x.shape[-2:])
    change = p @ _t(p) @ _t(dx) @ (rows - x @ p) + (columns - p @ x) @ _t(dx) @ _t(p) @ p
    return p, change - p @ dx @ p


def _check_pinv(
    A: Array, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,  # noqa: N803
    rtol: Any = None,
) -> list[Fault]:  # fmt: skip
    return [] if hermitian else svd_failures(A)


@op(name="pinv", **LINALG, backward="LinalgPinvBackward0",
    saves={"self": "*", "result": "*"}, residuals=True, check=_check_pinv)  # fmt: skip
def linalg_pinv(
    A: Array, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,  # noqa: N803
    rtol: Any = None,
) -> Array:  # fmt: skip
    """Compute the pseudo-inverse by singular values; those up to the tolerance count as 0."""
    if A.ndim < 2 or not computes(A.dtype):
        raise RuntimeError(
            f"linalg.pinv({scalar_name(A.dtype)}{{{list(A.shape)}}}): expected a tensor with 2 or "
            "more dimensions of float, double, cfloat or cdouble types"
        )
    for name, given in (("rcond", rcond), ("atol", atol), ("rtol", rtol)):
        if hasattr(given, "dtype") and is_complex(given.dtype):
            raise RuntimeError(
                f"torch.linalg.pinv: {name} tensor of complex type is not supported. Got "
                + scalar_name(given.dtype)
            )
    rtol = rcond if rcond is not None else rtol
    absolute = 0.0 if atol is None else atol
    if rtol is None:
        rtol = max(A.shape[-2:]) * float(finfo(A.dtype).eps)
        if hasattr(absolute, "dtype"):
            rtol = jnp.where(absolute > 0, 0.0, rtol)
        elif absolute > 0:
            rtol = 0.0
    if hermitian:
        need_equal_sides("linalg.eigh", A)
    plain = isinstance(absolute, (int, float)) and absolute == 0 and isinstance(rtol, (int, float))
    if not A.size or plain and not hermitian:
        return jnp.linalg.pinv(A, rtol=rtol if plain else 0.0)
    kind = real_of(A.dtype) if is_complex(A.dtype) else A.dtype
    return _pinv(hermitian, A, jnp.asarray(absolute, kind), jnp.asarray(rtol, kind))


def _check_pinverse(input: Array, rcond: float = 1e-15) -> list[Fault]:
    return svd_failures(input)


@op(backward="LinalgPinvBackward0", saves={"self": "*", "result": "*"}, residuals=True,
    check=_check_pinverse)  # fmt: skip
def pinverse(input: Array, rcond: float = 1e-15) -> Array:
    """Compute the pseudo-inverse by singular values."""
    return linalg_pinv(input, rcond)
