"""Functions that PyTorch's kernels have names for, as they are called from Python."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import cast, scalar_name
from ...program.op import op
from .checks import wide
from .grid import grid_sample
from .image import channel_shuffle
from .norm import group_normalized, layer_norm, moments
from .pad import pad as pad_any_mode

Array = jax.Array

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@op(method=False, backward="ConstantPadNdBackward0", fits={"value": "any"})
def constant_pad_nd(input: Array, pad: tuple[int, ...], value: Any = 0) -> Array:
    """Pad dims from the last one with a number."""
    return pad_any_mode(input, pad, "constant", value)


@op(method=False, saves={"self": "*", "weight": "*", "bias": "*"})
def conv_tbc(input: Array, weight: Array, bias: Array, pad: int = 0) -> Array:
    """Convolve over time, the first dim: `(T, N, in)` with `(width, in, out)` and `(out,)`.

    The result is `(T + 2 * pad - width + 1, N, out)`.
    """
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    width, inside, outside = weight.shape
    if input.shape[2] != inside:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if bias.shape[0] != outside:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    steps = input.shape[0] + 2 * pad - width + 1
    if steps < 0:
        sizes = [steps, input.shape[1], outside]
        raise RuntimeError(f"Trying to create tensor with negative dimension {steps}: {sizes}")
    if input.dtype != weight.dtype:
        found = f"{scalar_name(input.dtype)} and {scalar_name(weight.dtype)}"
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {found}")
    none = jnp.zeros((), input.dtype)
    padded = jax.lax.pad(input, none, ((pad, pad, 0), (0, 0, 0), (0, 0, 0)))
    return bias + sum((padded[k : k + steps] @ weight[k] for k in range(width)), none)


@op(method=False)
def detach_copy(input: Array) -> Array:
    """Copy; PyTorch has no derivative for it, though it records it."""
    return input


@op(method=False)
def native_channel_shuffle(input: Array, groups: int) -> Array:
    """Compute `channel_shuffle`; PyTorch has no derivative for it under this name."""
    return channel_shuffle(input, groups)


def _statistics(input: Array, axes: tuple[int, ...], eps: Any) -> tuple[Array, Array]:
    """Return means and reciprocal deviations, reduced dims kept."""
    _, mean, variance = moments(wide(input), axes)
    rstd = jax.lax.rsqrt(variance + eps)
    return cast(mean, input.dtype), cast(rstd, input.dtype)


@op(
    method=False, saves={"input": "*", "weight": "*"}, constant_outputs=(1, 2),
    sizes=("normalized_shape",),
)  # fmt: skip
def native_layer_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None,
    eps: Any,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Compute `layer_norm`; also return the means and reciprocal deviations that it took."""
    out = layer_norm(input, normalized_shape, weight, bias, eps)
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    return (out, *_statistics(input, axes, eps))


@op(method=False, saves={"input": "*", "weight": "*"}, numbers=("eps",))
def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int,  # noqa: N803
    HxW: int, group: int, eps: Any,  # noqa: N803
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Normalize groups; also return their means and reciprocal deviations `(N, group)`."""
    out = group_normalized(input, group, weight, bias, eps)
    grouped = input.reshape(N, group, C // group * HxW)
    mean, rstd = _statistics(grouped, (2,), eps)
    return out, mean.reshape(N, group), rstd.reshape(N, group)


@op(name="_batch_norm_statistics", method=False, function=False, differentiable=False)
def batch_norm_statistics(input: Array, eps: Any) -> tuple[Array, Array]:
    """Compute means and reciprocal deviations of the channels of `(N, C, ...)`."""
    mean, rstd = _statistics(input, (0, *range(2, input.ndim)), eps)
    return mean.reshape(-1), rstd.reshape(-1)


def _enter_grid_sampler(dims: int) -> None:
    def body(
        input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Array:
        mode, padding = _MODES[interpolation_mode], _PADDINGS[padding_mode]
        return grid_sample(input, grid, mode, padding, align_corners)

    body.__name__ = body.__qualname__ = f"grid_sampler_{dims}d"
    body.__doc__ = f"Compute `grid_sample` over {dims} dims; modes are numbers."
    saves = {"input": "*", "grid": "*"}
    op(method=False, backward=f"GridSampler{dims}DBackward0", saves=saves)(body)


for _dims in (2, 3):
    _enter_grid_sampler(_dims)
