"""Vector norms."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._dtypes import cast, category, is_complex, promote_types, real_of, scalar_name
from .._op import op
from ._elementwise import magnitude
from .reduction import Dims, axes, count, root

Array = jax.Array


def _safe_power(x: Array, p: float) -> Array:
    """`x ** p` of what is not negative, with gradient 0 at 0."""
    zero = x == 0
    return jnp.where(zero, 0, jnp.where(zero, 1, x) ** np.asarray(p).astype(x.dtype))


def vector_norm(x: Array, p: float, dims: tuple[int, ...], keepdim: bool) -> Array:
    """`(sum |x|**p) ** (1/p)` with its limits at 0 and infinity; gradient 0 at 0."""
    if p == 2:
        square = x * x if not is_complex(x.dtype) else jnp.real(x) ** 2 + jnp.imag(x) ** 2
        return root(jnp.sum(square, dims, dtype=square.dtype, keepdims=keepdim))
    size = magnitude(x)
    if math.isinf(p):
        return (jnp.max if p > 0 else jnp.min)(size, dims, keepdims=keepdim)
    if p == 0:
        return jnp.sum(size != 0, dims, dtype=size.dtype, keepdims=keepdim)
    if p == 1:
        return jnp.sum(size, dims, dtype=size.dtype, keepdims=keepdim)
    if p < 0:
        powers = size ** np.asarray(p).astype(size.dtype)
        return jnp.sum(powers, dims, dtype=size.dtype, keepdims=keepdim) ** (1 / p)
    total = jnp.sum(_safe_power(size, p), dims, dtype=size.dtype, keepdims=keepdim)
    return _safe_power(total, 1 / p)


@op(backward="LinalgVectorNormBackward0", saves={"self": "*", "result": "*"})
def norm(
    input: Array, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False,
    dtype: Any = None,
) -> Array:  # fmt: skip
    """Take the p-norm of all or along dims; "fro" is 2, "nuc" the sum of singular values."""
    if category(input.dtype) < 2:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(input.dtype)}"
        )
    if dtype is not None and category(dtype) < 2:
        raise RuntimeError(
            "linalg.vector_norm: dtype should be floating point or complex, but got "
            f"{scalar_name(dtype)}"
        )
    if dtype is not None and promote_types(input.dtype, dtype) != np.dtype(dtype):
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({scalar_name(input.dtype)}) should be "
            f"convertible without narrowing to the specified dtype ({scalar_name(dtype)})"
        )
    x = input if dtype is None else cast(input, dtype)
    out = real_of(x.dtype)
    if p == "nuc":
        return jnp.linalg.norm(x, "nuc", axis=axes(dim, x.ndim), keepdims=keepdim)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    order = 2.0 if p is None or isinstance(p, str) else float(p)
    dims = axes(dim, x.ndim)
    if (math.isinf(order) or order < 0) and count(x.shape, dims) == 0:
        name = "inf" if order > 0 else "-inf"
        if dim is None:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {name} norm on an empty tensor because "
                "the operation does not have an identity"
            )
        empty = next(d for d in dims if x.shape[d] == 0)
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {name} norm on the dimension {empty}because "
            "this dimension is empty and the operation does not have an identity"
        )
    half = x.dtype.itemsize < 4
    return cast(vector_norm(cast(x, np.dtype("float32")) if half else x, order, dims, keepdim), out)
