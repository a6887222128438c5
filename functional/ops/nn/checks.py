"""Tools of the families of `nn`: dtypes, dimensions, reductions, error texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import bfloat16, cast, is_floating, scalar_name

Array = jax.Array

_HALVES = (np.dtype("float16"), bfloat16)


def wide_dtype(dtype: Any) -> np.dtype:
    """Return the dtype that PyTorch computes in: float32 for float16 and bfloat16, else itself."""
    dtype = np.dtype(dtype)
    return np.dtype("float32") if dtype in _HALVES else dtype


def wide(x: Array) -> Array:
    """Cast `x` to the dtype that PyTorch computes in."""
    return cast(x, wide_dtype(x.dtype))


def repeated(x: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast `x` to `shape`; as in PyTorch, gradients of halves are added up in float32."""
    return x if x.shape == shape else jnp.broadcast_to(wide(x), shape).astype(x.dtype)


def need_float(x: Array, kernel: str, halves: bool = True) -> None:
    """Raise as PyTorch's dispatch macro does where `kernel` has no such dtype."""
    if not is_floating(x.dtype) or not halves and x.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def wrap_dim(dim: int, ndim: int) -> int:
    """Count `dim` from the front."""
    low, high = -max(ndim, 1), max(ndim, 1) - 1
    if not low <= dim <= high:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim % max(ndim, 1)


def broadcast(*arrays: Array | jax.ShapeDtypeStruct) -> tuple[int, ...]:
    """Return the common shape; raise PyTorch's error about the first two that do not match."""
    shape: tuple[int, ...] = arrays[0].shape
    for other in arrays[1:]:
        ndim = max(len(shape), other.ndim)
        a = (1,) * (ndim - len(shape)) + tuple(shape)
        b = (1,) * (ndim - other.ndim) + tuple(other.shape)
        for i in reversed(range(ndim)):
            if a[i] != b[i] and 1 not in (a[i], b[i]):
                raise RuntimeError(
                    f"The size of tensor a ({a[i]}) must match the size of tensor b ({b[i]}) at "
                    f"non-singleton dimension {i}"
                )
        shape = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))
    return shape


def ints(value: int | Sequence[int], n: int, message: str) -> tuple[int, ...]:
    """Return `n` ints of an int or a sequence of one or `n`; raise RuntimeError(`message`) else."""
    if isinstance(value, (int, np.integer)):
        return (int(value),) * n
    value = tuple(int(v) for v in value)
    if len(value) == 1:
        return value * n
    if len(value) != n:
        raise RuntimeError(message)
    return value


def size_list(shape: Sequence[int]) -> str:
    """Spell a shape as C++ prints it: `[2, 3]`."""
    return "[" + ", ".join(str(int(n)) for n in shape) + "]"


def torch_size(shape: Sequence[int]) -> str:
    """Spell a shape as Python prints it: `torch.Size([2, 3])`."""
    return f"torch.Size({size_list(shape)})"


def reduction_name(size_average: Any, reduce: Any, reduction: str) -> str:
    """Return the reduction that deprecated `size_average` and `reduce` ask for, or `reduction`."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: Array, reduction: str) -> Array:
    """Take the mean, the sum or neither; the mean of nothing is NaN."""
    if reduction == "mean":
        return jnp.mean(loss)
    return jnp.sum(loss) if reduction == "sum" else loss
