"""Reductions: sums, means, variances, all and any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...program.dtypes import cast, is_complex, is_integral, promote, real_of, scalar_name
from ...program.op import Decorator, Fault, ops_with
from ..elementwise.operands import BOOL, quotient, with_jvp
from ..nn.checks import wide
from ..shape.dimensions import wrap_dims

op: Decorator = ops_with(moves=True, steep=True)

Array = jax.Array
Dims = int | Sequence[int] | None
INT64 = np.dtype("int64")


def axes(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dims to reduce, from the front: all of them for None and for ()."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    # The one dim that a 0-dim tensor is said to have does not exist for JAX.
    return wrap_dims(dim, ndim) if ndim else wrap_dims(dim, ndim)[:0]


def _summand(input: Array, dtype: Any) -> Array:
    """Cast to `dtype`, else integers to int64."""
    if dtype is None:
        return cast(input, INT64) if is_integral(input.dtype) else input
    return cast(input, dtype)


def count(shape: Sequence[int], dims: Sequence[int]) -> int:
    """Number of elements that reduce into one."""
    return math.prod(shape[d] for d in dims)


@op()
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Add up; integers in int64."""
    x = _summand(input, dtype)
    dims = axes(dim, x.ndim)
    if x.dtype == BOOL:
        return jnp.any(x, dims, keepdims=keepdim)
    return cast(jnp.sum(wide(x), dims, keepdims=keepdim), x.dtype)


def _need_float(name: str, input: Array, dtype: Any) -> None:
    given, what = (input.dtype, "Input") if dtype is None else (dtype, "Optional")
    if is_integral(given):
        raise RuntimeError(
            f"{name}(): could not infer output dtype. {what} dtype must be either a floating "
            f"point or complex dtype. Got: {scalar_name(given)}"
        )


@op()
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Average; of nothing, NaN."""
    _need_float("mean", input, dtype)
    x = _summand(input, dtype)
    dims = axes(dim, x.ndim)
    if is_complex(x.dtype):
        return jnp.mean(x, dims, dtype=x.dtype, keepdims=keepdim)
    total = jnp.sum(wide(x), dims, keepdims=keepdim)
    count = math.prod(x.shape[d] for d in dims)
    return cast(quotient(total, jnp.asarray(count, total.dtype)), x.dtype)


@op(saves={"self": "*", "result": "*"})
def prod(
    input: Array, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """Multiply up; integers in int64. The gradient is exact at zeros."""
    x = _summand(input, dtype)
    dims = axes(dim, x.ndim)
    if x.dtype == BOOL:
        return jnp.all(x, dims, keepdims=keepdim)
    return jnp.prod(x, dims, dtype=x.dtype, keepdims=keepdim)


def _truth(fn: Callable[..., Array], input: Array, dim: Dims, keepdim: bool) -> Array:
    dims = () if dim is not None and dim == () else axes(dim, input.ndim)
    result = fn(input != 0 if input.dtype != BOOL else input, dims, keepdims=keepdim)
    return cast(result, input.dtype if input.dtype == np.dtype("uint8") else BOOL)


@op(differentiable=False)
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Return True if all are nonzero; uint8 for uint8."""
    return _truth(jnp.all, input, dim, keepdim)


@op(differentiable=False)
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Return True if any is nonzero; uint8 for uint8."""
    return _truth(jnp.any, input, dim, keepdim)


@op(differentiable=False, name="count_nonzero")
def count_nonzero(input: Array, dim: Dims = None) -> Array:
    """Count what is not zero, in int64."""
    return jnp.sum(input != 0, axes(dim, input.ndim), dtype=INT64)


# PyTorch multiplies the gradient by 1 or 0: an infinite one becomes NaN.
_without_nan = with_jvp(
    lambda x: jnp.where(x != x, 0, x), lambda _, x, dx: dx[0] * cast(x[0] == x[0], x[0].dtype)
)


@op(saves={"self": "*"})
def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Add up all but NaN."""
    if is_complex(input.dtype):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and is_complex(dtype) and not is_integral(input.dtype):
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{scalar_name(dtype)}'")
    return sum(_without_nan(input), dim, keepdim, dtype=dtype)


@op(backward="DivBackward0", saves={"self": "*"})
def nanmean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Average all but NaN."""
    if is_integral(input.dtype):
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{scalar_name(input.dtype)}"
        )
    if dtype is not None and is_integral(dtype):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating "
            f"point or complex dtype. Got: {scalar_name(dtype)}"
        )
    total = nansum(input, dim, keepdim, dtype=dtype)
    number = jnp.sum(input == input, axes(dim, input.ndim), dtype=INT64, keepdims=keepdim)
    return cast(quotient(wide(total), cast(number, wide(total).dtype)), total.dtype)


def _centred(x: Array, dims: tuple[int, ...]) -> Array:
    return x - _average(x, dims)


def _average(x: Array, dims: tuple[int, ...]) -> Array:
    """Compute the mean, so divided that it is exact where all are the same."""
    count = math.prod(x.shape[d] for d in dims)
    return quotient(jnp.sum(x, dims, keepdims=True), jnp.asarray(count, x.dtype))


def _divisor(x: Array, dims: tuple[int, ...], correction: float) -> float:
    if float(correction).is_integer():
        correction = int(correction)  # a length that is a symbol stays one
    return max(count(x.shape, dims) - correction, 0)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _var(x: Array, dims: tuple[int, ...], correction: float) -> Array:
    """Compute the variance in two passes, dims kept; halves in float32 by the caller."""
    away = _centred(x, dims)
    square = jnp.real(away) ** 2 + jnp.imag(away) ** 2 if is_complex(x.dtype) else away * away
    total = jnp.sum(square, dims, dtype=square.dtype, keepdims=True)
    return total / jnp.asarray(_divisor(x, dims, correction)).astype(total.dtype)


@_var.defjvp
def _var_jvp(dims: tuple[int, ...], correction: float, primals: Any, tangents: Any) -> Any:
    # The derivative through the mean vanishes, so it need not be taken.
    (x,), (dx,) = primals, tangents
    inner = jnp.real(jnp.conj(_centred(x, dims)) * dx)
    divisor = _divisor(x, dims, correction)
    scale = jnp.asarray(2 / divisor if divisor else np.inf).astype(inner.dtype)
    tangent = jnp.sum(inner * scale, dims, dtype=inner.dtype, keepdims=True)
    return _var(x, dims, correction), tangent


def root(x: Array) -> Array:
    """Square root with gradient 0 at 0."""
    zero = x == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, x)))


def _moments(
    what: str, input: Array, dim: Any, unbiased: bool | None, keepdim: bool, correction: Any
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return variance (dims kept), input and dims, for `var`, `std` and their like."""
    if is_integral(input.dtype):
        raise RuntimeError(f"{what} only support floating point and complex dtypes")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    dims = axes(dim, input.ndim)
    half = input.dtype.itemsize < 4
    x = cast(input, np.dtype("float32")) if half else input
    return _var(x, dims, float(correction)), x, dims


def _kept(x: Array, dims: tuple[int, ...], keepdim: bool, dtype: Any) -> Array:
    return cast(x if keepdim else lax.squeeze(x, dims), dtype)


@op(saves={"self": "*"})
def var(
    input: Array, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> Array:  # fmt: skip
    """Take the variance over `n - correction`; `unbiased=False` is `correction=0`."""
    v, _, dims = _moments("std and var", input, dim, unbiased, keepdim, correction)
    return _kept(v, dims, keepdim, real_of(input.dtype))


@op(saves={"self": "*", "result": "*"})
def std(
    input: Array, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> Array:  # fmt: skip
    """Take the standard deviation; the gradient at 0 is 0."""
    v, _, dims = _moments("std and var", input, dim, unbiased, keepdim, correction)
    return _kept(root(v), dims, keepdim, real_of(input.dtype))


@op(saves={"self": "*"}, method=False)
def var_mean(
    input: Array, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Take variance and mean."""
    v, x, dims = _moments("var_mean", input, dim, unbiased, keepdim, correction)
    average = _average(x, dims)
    return (
        _kept(v, dims, keepdim, real_of(input.dtype)), _kept(average, dims, keepdim, input.dtype)
    )  # fmt: skip


@op(saves={"self": "*", "result0": "*"}, method=False)
def std_mean(
    input: Array, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Take standard deviation and mean."""
    v, x, dims = _moments("std_mean", input, dim, unbiased, keepdim, correction)
    average = _average(x, dims)
    return (
        _kept(root(v), dims, keepdim, real_of(input.dtype)),
        _kept(average, dims, keepdim, input.dtype),
    )


@op(saves={"self": "*", "result": "*"}, residuals=True)
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Array:
    """Take the logarithm of the sum of exponentials, without overflow."""
    (x,) = promote(input, to_float=True)
    if x.ndim and x.size and not keepdim and dim in ((), []):
        kept = [1] * x.ndim  # PyTorch's exponentials of no dims are those of all, kept
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {kept}")
    return jax.scipy.special.logsumexp(x, axis=axes(dim, x.ndim), keepdims=keepdim)


def _check_cov_weights(input: Array, name: str) -> list[Fault]:
    return [Fault(input < 0, RuntimeError, f"cov(): {name} cannot be negative")]


@op(function=False, method=False, check=_check_cov_weights)
def _cov_weights(input: Array, name: str) -> Array:
    """Take the weights of `cov` as they are, if none is negative."""
    return input
