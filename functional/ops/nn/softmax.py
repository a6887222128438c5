"""Softmax and its logarithm. Backward keeps the result, as PyTorch's does."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import cast
from ...program.op import op
from .checks import need_float, wide, wrap_dim

Array = jax.Array

ALSO_FUNCTIONAL = ("softmax", "log_softmax")


def _prepared(input: Array, dim: int, dtype: Any, kernel: str) -> tuple[Array, int]:
    """Return the input in `dtype`, and `dim` from the front."""
    if dtype is not None:
        input = cast(input, dtype)
    dim = wrap_dim(dim, input.ndim)
    last = "lastdim_" if dim == max(input.ndim, 1) - 1 else ""
    if input.size:
        need_float(input, f"{kernel}_{last}kernel_impl")
    return input, dim


@op(saves={"result": "*"}, residuals=True)
def softmax(input: Array, dim: int, dtype: Any = None) -> Array:
    """Exponentiate and normalize along `dim`; halves are computed in float32."""
    x, dim = _prepared(input, dim, dtype, "softmax")
    if x.ndim == 0:
        return jnp.ones((), x.dtype) + (x - x)
    if x.size == 0:
        return x
    return cast(jax.nn.softmax(wide(x), axis=dim), x.dtype)


@op(saves={"result": "*"}, residuals=True)
def log_softmax(input: Array, dim: int, dtype: Any = None) -> Array:
    """Subtract the logarithm of the sum of exponentials along `dim`, without overflow."""
    x, dim = _prepared(input, dim, dtype, "log_softmax")
    if x.ndim == 0:
        return x - x
    if x.size == 0:
        return x
    return cast(jax.nn.log_softmax(wide(x), axis=dim), x.dtype)
