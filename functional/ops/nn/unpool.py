"""The inverse of max pooling, and random slopes."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, scalar_name
from ...program.op import Fault, op
from .checks import need_float

Array = jax.Array

F = "nn.functional"


def _check(input: Array, indices: Array, size: tuple[int, ...]) -> list[Fault]:
    count = int(np.prod(size))
    return [
        Fault(
            (indices < 0) | (indices >= count), RuntimeError,
            f"Found an invalid max index: {{value}} (output volumes are of size "
            f"{'x'.join(str(n) for n in size)})",
            indices,
        )
    ]  # fmt: skip


@op(name="_max_unpool", namespace=F, method=False, backward="MaxUnpool2DBackward0", check=_check,
    saves={"indices": "*"})  # fmt: skip
def max_unpool(input: Array, indices: Array, size: tuple[int, ...]) -> Array:
    """Put `input` at the flat positions `indices` of zeros of spatial `size`."""
    if indices.dtype != np.dtype("int64"):
        got = f" but got: {scalar_name(indices.dtype)}" if len(size) < 3 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    rank = len(size) + 1
    if input.ndim not in (rank, rank + 1):
        raise RuntimeError(
            f"Input to max_unpooling{len(size)}d should be a {rank}d or {rank + 1}d Tensor, but "
            f"got a tensor with {input.ndim} dimensions."
        )
    lead = input.shape[: input.ndim - len(size)]
    rows = int(np.prod(lead))
    inner = int(np.prod(input.shape[len(lead) :]))
    x, at = input.reshape(rows, inner), indices.reshape(rows, inner)
    out = jnp.zeros((rows, int(np.prod(size))), input.dtype)
    place = (jnp.arange(rows)[:, None], at)
    # Of maxima at one place the last stays, but all receive its gradient, as in PyTorch.
    same = x - jax.lax.stop_gradient(x)
    out = out.at[place].set(jax.lax.stop_gradient(x), mode="drop").at[place].add(same, mode="drop")
    return out.reshape(lead + tuple(size))


@op(name="rrelu", method=False, inplace=True, random=True, residuals=True,
    backward="RreluWithNoiseBackward0")  # fmt: skip
def rrelu(
    key: Array, input: Array, lower: Any = 1.0 / 8, upper: Any = 1.0 / 3, training: bool = False
) -> Array:
    """Apply a leaky relu whose slope is drawn in training, else the middle of the range."""
    for side, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {side} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    need_float(input, "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu")
    if training:
        slope = jax.random.uniform(key, input.shape, np.float32, lower, upper)
    else:
        slope = (lower + upper) / 2
    return jnp.where(input > 0, input, input * cast(slope, input.dtype))
