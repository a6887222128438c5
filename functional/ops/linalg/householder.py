"""Householder reflectors as LAPACK keeps them, and products of reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import scalar_name
from ...program.op import Decorator, ops_with
from .checks import (  # fmt: skip
    need_batch_of,
    need_dims,
    need_kernel,
    need_tau_of,
    size,
)
from .linalg import LINALG, _t

Array = jax.Array


op: Decorator = ops_with(steep=True)


class Geqrf(NamedTuple):
    a: Array
    tau: Array


@op(
    backward="GeqrfBackward0",
    no_gradient=(NotImplementedError, "the derivative for 'geqrf' is not implemented."),
)  # fmt: skip
def geqrf(input: Array) -> Geqrf:
    """Factor as LAPACK keeps QR: `R` above, the reflectors' vectors below, and their factors."""
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    need_kernel("geqrf_cpu", input, empty=True)
    rows, columns = input.shape[-2:]
    if not input.size:
        return Geqrf(input, jnp.zeros((*input.shape[:-2], min(rows, columns)), input.dtype))
    packed, tau = jnp.linalg.qr(lax.stop_gradient(input), mode="raw")
    return Geqrf(jnp.swapaxes(packed, -1, -2), tau)


@op(backward="OrmqrBackward0", residuals=True,
    saves={"self": "*", "input2": "*", "input3": "*", "result": "*"})  # fmt: skip
def ormqr(
    input: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False
) -> Array:
    """Compute `Q @ input3` (or `input3 @ Q`), `Q` whole, of the reflectors `input` and `input2`."""
    _ormqr_errors(input, input2, input3, left)
    rows, count = input.shape[-2], input2.shape[-1]
    if not input3.size or not count:
        return input3
    below = jnp.arange(rows)[:, None] > jnp.arange(count)
    vectors = jnp.where(below, input[..., :count], jnp.zeros((), input.dtype))
    vectors = vectors + jnp.eye(rows, count, dtype=input.dtype)
    adjoint = transpose == left  # acting on the adjoint from the left
    other = input3 if left else _t(input3)
    steps = (jnp.moveaxis(vectors, -1, 0), jnp.moveaxis(input2, -1, 0))
    out = _reflected(steps, other, adjoint)
    return out if left else _t(out)


def _reflected(steps: Any, x: Array, adjoint: bool) -> Array:
    """Apply reflections `1 - tau v v^H`, the last first; with `adjoint` the first first."""

    def reflect(x: Array, step: tuple[Array, Array]) -> tuple[Array, None]:
        v, tau = step
        tau = jnp.conj(tau) if adjoint else tau
        along = jnp.einsum("...i,...ij->...j", jnp.conj(v), x)
        return x - tau[..., None, None] * v[..., :, None] * along[..., None, :], None

    return lax.scan(reflect, x, steps, reverse=not adjoint)[0]


def _ormqr_errors(input: Array, tau: Array, other: Array, left: bool) -> None:
    name = "torch.ormqr"
    need_dims(name, "input", input)
    need_dims(name, "other", other)
    side = -2 if left else -1
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if size(tau, -1) != min(other.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    need_tau_of(name, input, tau)
    if other.ndim != input.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}"
        )
    need_batch_of(name, "other", other.shape[:-2], input)
    for argument, x in (("tau", tau), ("other", other)):
        if x.dtype != input.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {argument} to have the same dtype, but input has "
                f"dtype{scalar_name(input.dtype)} and {argument} has dtype {scalar_name(x.dtype)}"
            )
    need_kernel("ormqr_cpu", input, empty=True)


def _check_reflections(A: Array, tau: Array) -> None:  # noqa: N803
    name = "torch.linalg.householder_product"
    need_dims(name, "input", A)
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if A.shape[-1] < size(tau, -1):
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    need_tau_of(name, A, tau)
    if tau.dtype != A.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_name(tau.dtype)} does not match input dtype "
            f"{scalar_name(A.dtype)}"
        )
    need_kernel("orgqr_cpu", A, empty=True)


@op(name="householder_product", backward="LinalgHouseholderProductBackward0", residuals=True,
    saves={"input": "*", "tau": "*", "result": "*"}, **LINALG)  # fmt: skip
def householder_product(input: Array, tau: Array) -> Array:
    """Compute the first columns of a product of Householder reflections."""
    _check_reflections(input, tau)
    rows, columns = input.shape[-2:]
    out = jnp.broadcast_to(jnp.eye(rows, columns, dtype=input.dtype), input.shape)
    for k in reversed(range(tau.shape[-1])):
        v = jnp.where(jnp.arange(rows) > k, input[..., :, k], jnp.zeros((), input.dtype))
        v = v.at[..., k].set(1)
        along = jnp.einsum("...i,...ij->...j", jnp.conj(v), out)
        out = out - tau[..., k, None, None] * v[..., :, None] * along[..., None, :]
    return out
