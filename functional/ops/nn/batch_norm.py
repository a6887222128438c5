"""Batch and instance normalization, which also make new running statistics.

Both return the result alone, or `(result, new running mean, new running variance)` when running
statistics are given and the batch's are used; the facade writes those back in place.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import cast
from ...program.op import op
from .checks import need_float, torch_size, wide
from .norm import affine, check_parameters, moments

Array = jax.Array

F = "nn.functional"


def _check_channels(channels: int, **parameters: Array | None) -> None:
    for name, parameter in parameters.items():
        if parameter is not None and parameter.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {parameter.size}")


def _mixed(running: Array, new: Array, momentum: Any) -> Array:
    old = jax.lax.stop_gradient(wide(running))
    return cast(old * (1 - momentum) + new * momentum, running.dtype)


@op(
    namespace=F, name="_native_batch_norm", method=False, backward="NativeBatchNormBackward0",
    saves={"input": "*", "weight": "*", "running_mean": "*", "running_var": "*"},
    numbers=("momentum", "eps"), constant_outputs=(1, 2),
)  # fmt: skip
def native_batch_norm(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array | None,
    running_var: Array | None, training: bool, momentum: Any, eps: Any,
) -> Any:  # fmt: skip
    """Standardize each channel of `(N, C, ...)`: by the batch, or by the running statistics."""
    shape = input.shape
    if training and len(shape) > 1 and shape[0] * math.prod(shape[2:]) == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{torch_size(shape)}"
        )
    if not training:
        for name, stat in (("running_mean", running_mean), ("running_var", running_var)):
            if stat is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    channels = shape[1] if len(shape) > 1 else 0
    _check_channels(
        channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    need_float(input, "batch_norm")
    check_parameters(input, weight, bias, running_mean, running_var)
    x = wide(input)
    along = (channels,) + (1,) * (len(shape) - 2)
    updates = training and running_mean is not None and running_var is not None
    if input.size == 0:
        return (input, running_mean, running_var) if updates else input
    if not training:
        assert running_mean is not None and running_var is not None
        mean, variance = (jax.lax.stop_gradient(wide(s)) for s in (running_mean, running_var))
        y = (x - mean.reshape(along)) * jax.lax.rsqrt(variance + eps).reshape(along)
        return cast(affine(y, weight, bias, along), input.dtype)
    centered, mean, variance = moments(x, (0, *range(2, x.ndim)))
    y = affine(centered * jax.lax.rsqrt(variance + eps), weight, bias, along)
    y = cast(y, input.dtype)
    if running_mean is None or running_var is None:
        return y
    count = x.size // channels
    mean, variance = jax.lax.stop_gradient((mean.reshape(-1), variance.reshape(-1)))
    variance = variance * (count / (count - 1))
    return (
        y, _mixed(running_mean, mean, momentum), _mixed(running_var, variance, momentum),
    )  # fmt: skip


@op(
    namespace=F, name="_native_instance_norm", method=False, backward="ViewBackward0",
    saves={"input": "*", "weight": "*"}, numbers=("momentum", "eps"),
)  # fmt: skip
def native_instance_norm(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array | None,
    running_var: Array | None, use_input_stats: bool, momentum: Any, eps: Any,
) -> Any:  # fmt: skip
    """Standardize each channel of each sample; running statistics are means over samples."""
    shape = input.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size "
            f"{torch_size(shape)}"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    batch, channels = shape[:2]

    def repeated(parameter: Array | None) -> Array | None:
        return None if parameter is None else jnp.tile(parameter, batch)

    flat = native_batch_norm(
        input.reshape((1, batch * channels) + shape[2:]), repeated(weight), repeated(bias),
        repeated(running_mean), repeated(running_var), use_input_stats, momentum, eps,
    )  # fmt: skip
    if not isinstance(flat, tuple):
        return flat.reshape(shape)
    y, mean, variance = flat
    return (
        y.reshape(shape), mean.reshape(batch, channels).mean(0),
        variance.reshape(batch, channels).mean(0),
    )  # fmt: skip
