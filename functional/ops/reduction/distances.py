"""Norms of differences: distances of rows, and rows scaled down to a norm."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, cpp_name, is_complex, is_floating, promote, real_of, scalar_name
from ...program.op import op
from ..elementwise.arithmetic import no_bool_difference
from ..linalg.checks import computes, need_kernel
from ..linalg.matmul import need_kernel_dtypes
from ..nn.checks import wrap_dim
from ..shape import dimensions
from .norms import _vector_norm, vector_norm

Array = jax.Array


def _safe_root(total: Array, p: float) -> Array:
    """Compute the p-th root with gradient 0 at 0."""
    zero = total == 0  # not NaN, which stays
    base = jnp.where(zero, jnp.ones((), total.dtype), total)
    return jnp.where(zero, jnp.zeros((), total.dtype), base ** (1 / p))


def _distance(d: Array, p: float) -> Array:
    size = jnp.abs(d) if is_complex(d.dtype) else d * jnp.sign(d)
    d = size
    if p == 0:
        differs = jnp.where(jnp.isnan(size), size, (size != 0).astype(d.dtype))
        return jax.lax.stop_gradient(differs.sum(-1))
    if p == 1:
        return size.sum(-1)
    if np.isinf(p):  # each of those that are largest gets the whole gradient
        largest = jax.lax.stop_gradient(size.max(-1))
        ties = (size == largest[..., None]) & jnp.isfinite(size)
        return largest + jnp.where(ties, size - jax.lax.stop_gradient(size), 0).sum(-1)
    zero = size == 0  # not NaN, which stays
    power = jnp.where(zero, jnp.ones((), d.dtype), size) ** p
    return _safe_root(jnp.where(zero, jnp.zeros((), d.dtype), power).sum(-1), p)


# Whether `compute_mode` has distances of a matrix product; None: where there are many rows.
_PRODUCT = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}
_MANY_ROWS = 25


@op(method=False, backward="CdistBackward0", saves={"x1": "*", "x2": "*", "result": "*"})
def cdist(
    x1: Array, x2: Array, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Array:
    """Compute the p-norm distances of all pairs of rows."""
    if compute_mode not in _PRODUCT:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if not is_floating(x.dtype):
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: "
                               f"{scalar_name(x.dtype)}")  # fmt: skip
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    dimensions.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    # By a matrix product where there are many rows, which computes in halves too.
    product = _PRODUCT[compute_mode]
    if x1.dtype != x2.dtype or not computes(x1.dtype):
        if product is None:
            product = max(x1.shape[-2], x2.shape[-2]) > _MANY_ROWS
        if x1.size and x2.size and (p != 2 or not product):
            need_kernel("cdist", x1)
            need_kernel_dtypes("cdist", x1, x2)
    if x1.dtype != x2.dtype and x1.size and x2.size:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{cpp_name(x1.dtype)} != {cpp_name(x2.dtype)}"
        )
    a, b = x1, cast(x2, x1.dtype)
    d = a[..., :, None, :] - b[..., None, :, :]
    if not d.shape[-1]:
        return jnp.zeros(d.shape[:-1], d.dtype)
    if np.isinf(p):  # PyTorch's maximum here leaves NaN out
        d = jnp.where(jnp.isnan(d), 0, d)
    return _distance(d, p)


@op(saves={"self": "*", "other": "*", "result": "*"}, backward="DistBackward0")
def dist(input: Array, other: Array, p: float = 2) -> Array:
    """Compute the p-norm of `input - other`."""
    no_bool_difference(input, other)
    a, b = promote(input, other)
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{scalar_name(a.dtype)} instead."
        )
    dimensions.broadcast_shapes(a.shape, b.shape)
    d = (a - b).reshape(-1)
    return _vector_norm(d, float(p), (0,), False) if d.size else jnp.zeros((), real_of(d.dtype))


@op(method=False, backward="PdistBackward0", saves={"self": "*", "result": "*"})
def pdist(input: Array, p: float = 2.0) -> Array:
    """Compute the p-norm distances of all pairs of different rows."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not is_floating(input.dtype):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = np.triu_indices(input.shape[0], 1)
    d = input[i] - input[j]
    if d.size and d.dtype.itemsize == 2:
        raise NotImplementedError(f"\"pdist\" not implemented for '{scalar_name(d.dtype)}'")
    return _distance(d, float(p)) if d.size else jnp.zeros(d.shape[:1], d.dtype)


@op(backward="RenormBackward0", inplace=True, saves={"self": "*"})
def renorm(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Scale slices along `dim` whose p-norm exceeds `maxnorm` down to it."""
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(input.dtype)}"
        )
    dim = wrap_dim(dim, input.ndim)
    axes = tuple(i for i in range(input.ndim) if i != dim)
    norms = vector_norm(input, p, axes, True)
    factor = jnp.where(norms > maxnorm, maxnorm / (norms + 1e-7), jnp.ones((), norms.dtype))
    return input * cast(factor, input.dtype)
