"""Norms of vectors and matrices, `torch.linalg`'s."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, is_complex, is_floating, is_integral, promote_types, scalar_name
from ...program.op import op
from ..linalg.linalg import LINALG
from ..shape import dimensions

Array = jax.Array
Dims = int | Sequence[int]

_RESULT = {"self": "*", "result": "*"}


def _need_float(name: str, input: Array, dtype: np.dtype | None) -> Array:
    if is_integral(input.dtype):
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got "
            + scalar_name(input.dtype)
        )
    if dtype is None:
        return input
    if is_integral(dtype):
        raise RuntimeError(
            f"linalg.{name}: dtype should be floating point or complex, but got "
            + scalar_name(dtype)
        )
    if is_complex(input.dtype) != is_complex(dtype):
        kind = "complex" if is_complex(input.dtype) else "real"
        raise RuntimeError(
            f"linalg.{name}: dtype should be {kind} for {kind} inputs, but got "
            + scalar_name(dtype)
        )
    if promote_types(input.dtype, dtype) != dtype:
        raise RuntimeError(
            f"linalg.{name}: the dtype of the input ({scalar_name(input.dtype)}) should be "
            f"convertible without narrowing to the specified dtype ({scalar_name(dtype)})"
        )
    return cast(input, dtype)


def need_real_order(name: str, order: Any) -> None:
    """Require an order of a norm that is no complex number."""
    if isinstance(order, complex):
        raise RuntimeError(f"linalg.{name}: Expected a non-complex scalar as the order of norm.")


def _abs(x: Array) -> Array:
    """Compute the absolute value with gradient 0 at 0."""
    if not is_complex(x.dtype):
        return jnp.sign(x) * x
    zero = x == 0
    return jnp.where(zero, 0, jnp.abs(jnp.where(zero, 1, x)))


def _vector_norm(x: Array, order: float, axes: tuple[int, ...], keepdim: bool) -> Array:
    """Compute the norm over `axes`; its gradient is 0 where the norm is 0."""
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdim}
    if order == 2:
        square = jnp.real(x * jnp.conj(x)) if is_complex(x.dtype) else x * x
        total = jnp.sum(square, **options, dtype=square.dtype)
        zero = total == 0
        return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, total)))
    size = _abs(x)
    if order == 1:
        return jnp.sum(size, **options, dtype=size.dtype)
    if order == 0:
        return jnp.sum(size != 0, **options).astype(size.dtype)
    if math.isinf(order):
        return (jnp.max if order > 0 else jnp.min)(size, **options)
    zero = size == 0
    powers = jnp.where(zero, 0 if order > 0 else jnp.inf, jnp.where(zero, 1, size) ** order)
    total = jnp.sum(powers, **options, dtype=size.dtype)
    none = (total == 0) | jnp.isinf(total)
    root = jnp.where(none, 1, total) ** (1 / order)
    return jnp.where(none, jnp.where(total == 0, 0, total) if order > 0 else 0, root)


@op(name="vector_norm", **LINALG, backward="LinalgVectorNormBackward0",
    saves=_RESULT, residuals=True)  # fmt: skip
def vector_norm(
    x: Array, ord: float = 2, dim: Dims | None = None, keepdim: bool = False,
    dtype: np.dtype | None = None,
) -> Array:  # fmt: skip
    """Compute the `ord`-norm of the elements, all or those along dims."""
    need_real_order("vector_norm", ord)
    x = _need_float("vector_norm", x, dtype)
    axes = tuple(range(x.ndim))
    if dim is not None and (isinstance(dim, int) or len(dim)):
        axes = tuple(axis for axis in dimensions.wrap_dims(dim, x.ndim) if x.ndim)
    if ord < 0 or math.isinf(ord):
        _need_elements(x, ord, () if dim is None else (dim,) if isinstance(dim, int) else dim)
    return _vector_norm(x, float(ord), axes, keepdim)


def _need_elements(x: Array, order: float, dims: Sequence[int]) -> None:
    """Require an element along each of the dims, as they were given; none are all."""
    name = f"linalg.vector_norm cannot compute the {order:g} norm on"
    if not dims and not x.size:
        raise RuntimeError(
            f"{name} an empty tensor because the operation does not have an identity"
        )
    for dim in dims if x.ndim else ():
        if not x.shape[dim]:
            raise RuntimeError(
                f"{name} the dimension {dim}because this dimension is empty and the operation does "
                "not have an identity"
            )


def _largest(x: Array, axis: int, keepdims: bool = False) -> Array:
    """Return the maximum of what is not negative: 0 of nothing."""
    if x.shape[axis]:
        return jnp.max(x, axis=axis, keepdims=keepdims)
    return jnp.sum(x, axis=axis, keepdims=keepdims)


def _least(said: int) -> Callable[..., Array]:
    """Return the minimum; of nothing there is none, along the dim that PyTorch says."""

    def least(x: Array, axis: int, keepdims: bool = False) -> Array:
        if x.size == 0 and x.shape[axis] == 0:
            raise IndexError(f"amin(): Expected reduction dim {said} to have non-zero size.")
        return jnp.min(x, axis=axis, keepdims=keepdims)

    return least


def _matrix_norm(x: Array, order: Any, dim: Sequence[int], keepdim: bool) -> Array:
    if len(dim) != 2:
        text = " ".join(map(str, dim))
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {text}")
    rows, columns = (dimensions.wrap_dim(axis, x.ndim) for axis in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if order == "fro":
        return _vector_norm(x, 2, (rows, columns), keepdim)
    if order in ("nuc", 2, -2):
        values = jnp.linalg.svd(jnp.moveaxis(x, (rows, columns), (-2, -1)), compute_uv=False)
        picks: dict[Any, Callable[..., Array]] = {"nuc": jnp.sum, 2: _largest, -2: _least(-1)}
        out = picks[order](values, axis=-1)
    else:
        summed, picked = (rows, columns) if abs(order) == 1 else (columns, rows)
        sums = jnp.sum(_abs(x), axis=summed, keepdims=True)
        said = picked if keepdim or picked < summed else picked - 1
        out = (_largest if order > 0 else _least(said))(sums, axis=picked, keepdims=True)
        out = jnp.squeeze(out, (rows, columns))
    return jnp.expand_dims(out, sorted((rows, columns))) if keepdim else out


@op(name="matrix_norm", **LINALG, backward="LinalgVectorNormBackward0",
    saves=_RESULT, residuals=True)  # fmt: skip
def matrix_norm(
    A: Array, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False,  # noqa: N803
    dtype: np.dtype | None = None,
) -> Array:  # fmt: skip
    """Compute the norm of matrices: "fro", "nuc", 1, 2, inf or their negatives."""
    need_real_order("matrix_norm", ord)
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not isinstance(ord, str) and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    if A.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    if A.dtype.itemsize == 2 and is_floating(A.dtype) and ord in ("nuc", 2, -2):
        raise RuntimeError(
            f"linalg.matrix_norm: Low precision dtypes not supported. Got {scalar_name(A.dtype)}"
        )
    return _matrix_norm(_need_float("matrix_norm", A, dtype), ord, dim, keepdim)


@op(name="norm", **LINALG, backward="LinalgVectorNormBackward0",
    saves=_RESULT, residuals=True)  # fmt: skip
def norm(
    A: Array, ord: Any = None, dim: Dims | None = None, keepdim: bool = False,  # noqa: N803
    dtype: np.dtype | None = None,
) -> Array:  # fmt: skip
    """Compute the norm of vectors or of matrices, by the rank or the number of dims."""
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got " + str(list(dims))
        )
    if dims is None and ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
            f"Got {A.ndim}D."
        )
    rank = A.ndim if dims is None else len(dims)
    if ord is not None and (rank == 2 or isinstance(ord, str)):
        return matrix_norm(A, ord, dims or (-2, -1), keepdim, dtype)
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype)
