"""Normalization layers. Halves compute their statistics in float32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, default_float, finfo, is_complex, is_integral, promote_types
from ...program.op import op
from .checks import need_float, size_list, wide, wide_dtype

Array = jax.Array

F = "nn.functional"

# torch.rms_norm has F.rms_norm's signature; torch.layer_norm and its like have not.
ALSO_FUNCTIONAL = ("rms_norm",)


def check_parameters(input: Array, *parameters: Array | None) -> None:
    """Require one dtype, except that halves may have float32 parameters."""
    odd = [p for p in parameters if p is not None and p.dtype != input.dtype]
    if any(p.dtype != np.dtype("float32") for p in odd):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if odd and wide_dtype(input.dtype) == input.dtype:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _check_trailing(
    input: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None, comma: str
) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            "one element, but got normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
                f"shape {size_list(parameter.shape)} and normalized_shape = {size_list(shape)}"
            )
    if input.ndim < len(shape) or input.shape[input.ndim - len(shape) :] != shape:
        expected = ", ".join(str(n) for n in shape)
        raise RuntimeError(
            f"Given normalized_shape={size_list(shape)}, expected input with shape "
            f"[*{comma}{expected}], but got input of size{size_list(input.shape)}"
        )


def moments(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return the centered input, mean and biased variance, reduced dims kept."""
    mean = x.mean(axes, keepdims=True)
    centered = x - mean
    return centered, mean, (centered * centered).mean(axes, keepdims=True)


def affine(y: Array, weight: Array | None, bias: Array | None, shape: tuple[int, ...]) -> Array:
    if weight is not None:
        y = y * cast(weight, y.dtype).reshape(shape)
    if bias is not None:
        y = y + cast(bias, y.dtype).reshape(shape)
    return y


@op(
    namespace=F, method=False, backward="NativeLayerNormBackward0", numbers=("eps",),
    sizes=("normalized_shape",),
    saves={"input": "*", "weight": "*", "bias": "*"},
)  # fmt: skip
def layer_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None = None,
    bias: Array | None = None, eps: Any = 1e-5,
) -> Array:  # fmt: skip
    """Standardize over the last dims, then scale and shift."""
    shape = tuple(normalized_shape)
    _check_trailing(input, shape, weight, bias, ", ")
    need_float(input, "LayerNormKernelImpl")
    check_parameters(input, weight, bias)
    if input.size == 0:
        return input
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    centered, _, variance = moments(wide(input), axes)
    y = centered * jax.lax.rsqrt(variance + eps)
    return cast(affine(y, weight, bias, shape), input.dtype)


@op(
    method=False, backward="MulBackward0", saves={"self": "*", "weight": "*"}, numbers=("eps",),
    sizes=("normalized_shape",),
)  # fmt: skip
def rms_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None = None,
    eps: Any = None,
) -> Array:  # fmt: skip
    """Divide by the root mean square over the last dims, then scale."""
    shape = tuple(normalized_shape)
    _check_trailing(input, shape, weight, None, "")
    if not is_complex(input.dtype):
        need_float(input, "rms_norm")
    dtype = input.dtype if weight is None else promote_types(input.dtype, weight.dtype)
    x = wide(input)
    if eps is None:
        eps = float(finfo(x.dtype).eps)
    if x.size == 0:
        return input
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    y = x * jax.lax.rsqrt((x * x).mean(axes, keepdims=True) + eps)
    if weight is not None:
        y = cast(y, promote_types(y.dtype, dtype))
    return cast(affine(y, weight, None, shape), input.dtype)


def group_normalized(
    input: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: Any
) -> Array:
    """Standardize each group of channels of `(N, C, ...)`, then scale and shift by channel."""
    batch, channels = input.shape[:2]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {size_list(input.shape)} and num_groups={num_groups}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != (channels,):
            # PyTorch prints the weight's shape for a wrong bias as well.
            shown = weight if weight is not None else parameter
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in "
                f"input, but got {name} of shape {size_list(shown.shape)} and input of shape "
                f"{size_list(input.shape)}"
            )
    need_float(input, "GroupNormKernelImpl")
    check_parameters(input, weight, bias)
    if input.size == 0:
        return input
    x = wide(input).reshape(batch, num_groups, -1)
    centered, _, variance = moments(x, (2,))
    y = (centered * jax.lax.rsqrt(variance + eps)).reshape(input.shape)
    shape = (channels,) + (1,) * (input.ndim - 2)
    return cast(affine(y, weight, bias, shape), input.dtype)


@op(namespace=F, method=False, backward="DivBackward0", saves={"self": "*"})
def local_response_norm(
    input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """Divide by a power of the mean square over `size` neighbouring channels."""
    if input.ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{input.ndim} dimensions)"
        )
    if input.size == 0:
        return input
    if size <= 0:
        named = f"kH: {size} kW: 1" if input.ndim == 3 else f"kT: {size} kH: 1 kW: 1"
        raise RuntimeError(f"kernel size should be greater than zero, but got {named}")
    x = wide(input)
    squares = jnp.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2)] + [(0, 0)] * (x.ndim - 2))
    channels = x.shape[1]
    total = sum(squares[:, i : i + channels] for i in range(size))
    if is_integral(input.dtype):  # PyTorch's average of integers is one, its quotient a float
        average = cast(jnp.floor_divide(total, size), default_float())
        return cast(x, default_float()) / (average * alpha + k) ** beta
    return cast(x / (total / size * alpha + k) ** beta, input.dtype)
