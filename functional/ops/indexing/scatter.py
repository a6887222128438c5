"""Ops that write at positions along a dim: scatter and its family."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...program.dtypes import cast, iinfo, is_integral
from ...program.op import Fault, op
from ..elementwise.operands import refuse
from ..shape import dimensions
from .gather import gather_along
from .indexing import IN_BOUNDS, INT32_INT64, outside, put_at

Array = jax.Array


def _key(shape: dimensions.Shape, dim: int, index: Array) -> tuple[Array, ...]:
    """Return the key that writes each element of `index` at its own place but along `dim`."""
    own = [lax.broadcasted_iota(index.dtype, index.shape, axis) for axis in range(len(shape))]
    return tuple(index if axis == dim else own[axis] for axis in range(len(shape)))


def _prepare(input: Array, dim: int, index: Array, src: Array | None) -> int:
    """Run all checks of the scatter family that need no values; return the dim from the front."""
    dim = dimensions.wrap_dim(dim, input.ndim)
    if index.dtype.name not in INT32_INT64:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src.dtype != input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        return dim
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None and max(src.ndim, 1) != max(index.ndim, 1):
        # PyTorch compares lengths first, up to one that does not fit.
        fits = all(a == dim or n <= input.shape[a] for a, n in enumerate(index.shape))
        if src.ndim and fits and all(map(operator.le, index.shape, src.shape)):
            dimensions.wrap_dim(min(src.ndim, index.ndim), src.ndim)
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    lengths = list(index.shape) or [1]
    own, given = list(input.shape) or [1], lengths if src is None else list(src.shape) or [1]
    if any((axis != dim and n > own[axis]) or n > given[axis] for axis, n in enumerate(lengths)):
        suffix = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} "
            f"apart from dimension {dim}{suffix}"
        )
    return dim


def _check_scatter(input: Array, dim: int, index: Array, *args: Any, **kwargs: Any) -> list[Fault]:
    axis = dimensions.wrap_dim(dim, input.ndim)
    size = input.shape[axis] if input.ndim else 1
    message = f"index {{value}} is out of bounds for dimension {axis} with size {size}"
    return [outside(index, size, message, RuntimeError)]


def _flat_if_scalar(input: Array, index: Array, src: Array | None) -> tuple[Array, Array, Any]:
    """Turn 0-dim tensors into vectors, and cut `src` to the part that is read."""
    if not input.ndim:
        input = input.reshape(1)
    if not index.ndim:
        index = index.reshape(1)
    if src is not None:
        src = src.reshape(1) if not src.ndim else src
        src = lax.slice(src, (0,) * src.ndim, index.shape)
    return input, index, src


# Each writer is linear, or has its derivative spelt out below, so JAX's gradient is PyTorch's.


def _write(input: Array, dim: int, index: Array, src: Any, how: str) -> Array:
    base, index, src = _flat_if_scalar(input, index, src)
    key = _key(base.shape, dim, index)
    if how == "set":
        return put_at(base, key, src).reshape(input.shape)
    if base.dtype == bool:
        how = _OF_BOOLS.get(how, how)
    return getattr(base.at[key], how)(src, mode=IN_BOUNDS).reshape(input.shape)


_OF_BOOLS = {"add": "max", "mul": "min"}  # "or", "and"


_REDUCE = {"add": "add", "multiply": "mul"}


@op(
    inplace=True,
    saves={"index": "*"},
    numbers=("src", "value"),
    check=_check_scatter,
    fits={"src": "any", "value": "any"},
)
def scatter(
    input: Array, dim: int, index: Array, src: Any = None, value: Any = None,
    reduce: str | None = None,
) -> Array:  # fmt: skip
    """Write one element of `src`, or a number, along a dim for each element of `index`."""
    src = value if src is None else src
    number = src if isinstance(src, (bool, int, float, complex)) or src.weak_type else None
    dim = _prepare(input, dim, index, None if number is not None else src)
    if reduce is not None and reduce not in _REDUCE:
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not index.size:
        return input
    if number is not None:
        src = jnp.broadcast_to(cast(number, input.dtype), index.shape)
    if reduce == "multiply":
        return _reduce(input, index, src, dim, "prod", True)
    return _write(input, dim, index, src, "set" if reduce is None else "add")


@op(inplace=True, saves={"index": "src"}, check=_check_scatter)
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """Add one element of `src` along a dim for each element of `index`."""
    dim = _prepare(input, dim, index, src)
    return _write(input, dim, index, src, "add") if index.size else input


# Reductions ------------------------------------------------------------------------------------

_WRITERS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}
REDUCTION_NAMES = {"max": "amax", "min": "amin"}  # PyTorch takes them, too


def _unit(dtype: Any, reduce: str) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    low = reduce == "amax"
    if is_integral(dtype):
        return iinfo(dtype).min if low else iinfo(dtype).max
    return -jnp.inf if low else jnp.inf


def _zeroed(input: Array, dim: int, index: Array) -> Array:
    return _write(input, dim, index, jnp.zeros(index.shape, input.dtype), "set")


@partial(jax.custom_jvp, nondiff_argnums=(3, 4, 5))
def _reduce(
    input: Array, index: Array, src: Array, dim: int, reduce: str, include_self: bool
) -> Array:
    base = input
    if not include_self:
        unit = jnp.full(index.shape, _unit(input.dtype, reduce), input.dtype)
        base = _write(input, dim, index, unit, "set")
    out = _write(base, dim, index, src, _WRITERS[reduce])
    if reduce != "mean":
        return out
    count = _count(input, index, dim, include_self)
    return out // count if is_integral(input.dtype) else out / count


def _count(input: Array, index: Array, dim: int, include_self: bool) -> Array:
    start = jnp.full(input.shape, int(include_self), input.dtype)
    return jnp.maximum(_write(start, dim, index, jnp.ones(index.shape, input.dtype), "add"), 1)


@_reduce.defjvp
def _reduce_jvp(
    dim: int, reduce: str, include_self: bool, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    """Differentiate by the formulas of PyTorch's `scatter_reduce_backward`, forwards."""
    input, index, src = primals
    input_t, _, src_t = tangents
    result = _reduce(input, index, src, dim, reduce, include_self)
    read = partial(gather_along, dim=dim, index=index)
    _, _, src = _flat_if_scalar(input, index, src)
    _, _, src_t = _flat_if_scalar(input, index, src_t)
    src, src_t = src.reshape(index.shape), src_t.reshape(index.shape)
    after: Any = None
    if reduce == "mean":
        after = 1 / _count(input, index, dim, include_self)
    elif reduce == "prod":
        safe = jnp.where(input == 0, 1, input)
        factor = _reduce(safe, index, src, dim, reduce, include_self) / safe
        if not include_self:  # it may be NaN where nothing of `input` is left
            factor = _zeroed(factor, dim, index)
        input_t *= factor
        zero = src == 0
        zeros = _write(jnp.zeros_like(input), dim, index, zero.astype(src.dtype), "add")
        single = zero & (read(zeros) == 1)
        others = _reduce(input, index, jnp.where(single, 1, src), dim, reduce, include_self)
        src_t *= jnp.where(single, read(others), read(result) / jnp.where(zero, 1, src))
    elif reduce in ("amax", "amin"):
        # PyTorch counts an equal element of `input` among the ties even if it is not included.
        own, given = input == result, src == read(result)
        ties = _write(own.astype(input.dtype), dim, index, given.astype(src.dtype), "add")
        # A NaN equals nothing, not even itself: nobody has a share, and the gradient is NaN.
        nobody = ties == 0
        mine = jnp.where(nobody, jnp.nan, own.astype(input.dtype))
        input_t *= mine if include_self else _zeroed(mine, dim, index)
        src_t *= jnp.where(read(nobody), jnp.nan, given.astype(src.dtype))
        after = 1 / jnp.maximum(ties, 1)
    if not include_self:
        input_t = _zeroed(input_t, dim, index)
    out_t = _write(input_t, dim, index, src_t, "add")
    return result, out_t if after is None else out_t * after


_REDUCE_SAVES = {"self": "*", "index": "*", "src": "*", "result": "*"}


@op(inplace=True, saves=_REDUCE_SAVES, check=_check_scatter, residuals=True)
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
) -> Array:
    """Reduce elements of `src` into those of `input` along a dim."""
    dim = _prepare(input, dim, index, src)
    reduce = REDUCTION_NAMES.get(reduce, reduce)
    if reduce not in _WRITERS:
        raise RuntimeError(
            "reduce argument must be either sum, prod, mean, amax or amin, got " + reduce
        )
    if not index.size:
        return input
    if reduce == "mean" and input.dtype == bool:
        raise NotImplementedError(
            "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'"
        )
    if reduce[:2] == "am":
        refuse(f"scatter_gather_tensor_cpu_reduce_{reduce}", input.dtype, 3)
    if input.dtype.name != "bool":
        return _reduce(input, index, src, dim, reduce, include_self)
    wide = [x.astype(jnp.int32) for x in (input, src)]
    return _reduce(wide[0], index, wide[1], dim, reduce, include_self).astype(bool)
