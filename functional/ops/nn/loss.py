"""Losses that are one node of the graph in PyTorch; the facade composes the others.

`reduction` is "none", "mean" or "sum". Deprecated `size_average` and `reduce` are the facade's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from ...program.dtypes import cast, category, promote, promote_types, scalar_name
from ...program.op import Fault, op
from ..elementwise.arithmetic import no_bool_difference
from ..elementwise.operands import magnitude
from .checks import broadcast, need_float, reduced, reduction_name, size_list, torch_size, wide

Array = jax.Array

F = "nn.functional"


def _pair(input: Array, target: Array, kernel: str) -> tuple[Array, Array]:
    broadcast(input, target)
    x, y = promote(input, target)
    need_float(x, kernel)
    return x, y


def _castable(found: Any, wanted: Any) -> None:
    """Raise if a loss that has the input's dtype is computed in one of a higher kind."""
    if category(found) > category(wanted):
        raise RuntimeError(
            f"result type {scalar_name(found)} can't be cast to the desired output type "
            f"{scalar_name(wanted)}"
        )


@op(namespace=F, method=False, saves={"self": "*", "target": "*"})
def mse_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """Square the difference."""
    reduction = reduction_name(None, None, reduction)
    x, y = _pair(input, target, "mse_cpu")
    return reduced((x - y) * (x - y), reduction)


def _need_beta(input: Any, target: Any, reduction: str = "mean", beta: Any = 1.0) -> None:
    if isinstance(beta, (int, float)) and not 0 <= beta:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")


@op(namespace=F, method=False, saves={"self": "*", "target": "*"}, numbers=("beta",),
    backward="SmoothL1LossBackward0", need=_need_beta)  # fmt: skip
def smooth_l1_loss(input: Array, target: Array, reduction: str = "mean", beta: Any = 1.0) -> Array:
    """Square the difference over `2 * beta` below `beta`, linear above."""
    reduction = reduction_name(None, None, reduction)
    _need_beta(input, target, reduction, beta)
    x, y = _pair(input, target, "smooth_l1_cpu")
    dtype = x.dtype
    if dtype == jnp.bfloat16:  # PyTorch's kernel computes these in float32, float16 as it is
        x, y = wide(x), wide(y)
    off, beta = x - y, cast(beta, x.dtype)
    size = magnitude(off)
    # With beta = 0 nothing is below it, and 0 / 0 must not reach the gradient. The square is not
    # that of the size, which has no second derivative at 0.
    far = size >= beta
    near = jnp.where(far, 0, off)
    square = 0.5 * near * near / jnp.where(beta > 0, beta, jnp.ones((), x.dtype))
    return reduced(cast(jnp.where(far, size - 0.5 * beta, square), dtype), reduction)


def _need_delta(input: Any, target: Any, reduction: str = "mean", delta: Any = 1.0) -> None:
    if isinstance(delta, (int, float)) and not 0 < delta:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")


@op(
    namespace=F, method=False, saves={"self": "*", "target": "*"}, numbers=("delta",),
    need=_need_delta,
)  # fmt: skip
def huber_loss(input: Array, target: Array, reduction: str = "mean", delta: Any = 1.0) -> Array:
    """Compute half the squared difference up to `delta`, linear above; in the input's dtype."""
    reduction = reduction_name(None, None, reduction)
    _need_delta(input, target, reduction, delta)
    broadcast(input, target)
    _castable(promote_types(input.dtype, target.dtype), input.dtype)
    x, y = _pair(input, target, "huber_cpu")
    dtype = x.dtype
    if dtype == jnp.float16:  # PyTorch's kernel computes these in float32, bfloat16 as it is
        x, y = wide(x), wide(y)
    off, delta = x - y, cast(delta, x.dtype)
    size = magnitude(off)
    far = size >= delta
    near = jnp.where(far, 0, off)  # an infinite one would make NaN
    slope = jnp.where(far, delta, 0)  # and an infinite `delta` as well
    loss = jnp.where(far, slope * (size - 0.5 * slope), 0.5 * near * near)
    return cast(reduced(cast(loss, dtype), reduction), input.dtype)


@op(namespace=F, method=False, saves={"self": "*", "target": "self"})
def soft_margin_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """Take `log(1 + exp(-target * input))`, in the input's dtype."""
    reduction = reduction_name(None, None, reduction)
    shape = broadcast(input, target)
    if shape != input.shape:  # PyTorch writes into what is like the input
        raise RuntimeError(
            f"output with shape {size_list(input.shape)} doesn't match the broadcast shape "
            f"{size_list(shape)}"
        )
    if category(input.dtype) < 2:
        _castable(jnp.float32, input.dtype)
    x, y = promote(input, target)
    return cast(reduced(jnp.log1p(jnp.exp(-x * y)), reduction), input.dtype)


@jax.custom_jvp
def _bce(x: Array, y: Array) -> Array:
    low = jnp.full((), -100, x.dtype)
    return (y - 1) * jnp.maximum(jnp.log1p(-x), low) - y * jnp.maximum(jnp.log(x), low)


def _bce_jvp(primals: tuple[Array, Array], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    # PyTorch's backward keeps the denominator off 0 instead of differentiating the clamp; for
    # the target it does not clamp, so that zeros must stay symbolic: infinity times 0 is NaN.
    (x, y), (dx, dy) = primals, tangents
    slope = (x - y) / jnp.maximum((1 - x) * x, jnp.full((), 1e-12, x.dtype))
    tangent = jnp.zeros_like(x)
    if not isinstance(dx, SymbolicZero):
        tangent = slope * dx
    if not isinstance(dy, SymbolicZero):
        tangent = tangent + (jnp.log1p(-x) - jnp.log(x)) * dy
    return _bce(x, y), tangent


_bce.defjvp(_bce_jvp, symbolic_zeros=True)


def _bce_check(
    input: Array, target: Array, weight: Any = None, reduction: str = "mean"
) -> list[Fault]:
    message = "all elements of {} should be between 0 and 1"
    return [
        Fault(~((input >= 0) & (input <= 1)), RuntimeError, message.format("input")),
        Fault(~((target >= 0) & (target <= 1)), RuntimeError, message.format("target")),
    ]


@op(
    namespace=F, method=False, check=_bce_check,
    saves={"self": "*", "target": "*", "weight": "*"},
)  # fmt: skip
def binary_cross_entropy(
    input: Array, target: Array, weight: Array | None = None, reduction: str = "mean"
) -> Array:
    """Cross entropy of probabilities; logarithms are not taken below -100."""
    reduction = reduction_name(None, None, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({torch_size(target.shape)}) that is different to the input "
            f"size ({torch_size(input.shape)}) is deprecated. Please ensure they have the same "
            "size."
        )
    need_float(input, "binary_cross_entropy")
    if target.dtype != input.dtype:  # the weights may be of any
        raise RuntimeError(
            f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(input.dtype)}"
        )
    loss = _bce(wide(input), wide(target))
    if weight is not None:
        for i, n in enumerate(reversed(weight.shape), 1):
            if i > input.ndim or n not in (1, input.shape[-i]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {-i}! Mismatching "
                    f"argument at index 1 had {torch_size(weight.shape)}; but expected shape "
                    f"should be broadcastable to {size_list(input.shape)}"
                )
        loss = loss * jax.lax.stop_gradient(wide(weight))
    return cast(reduced(loss, reduction), input.dtype)


@op(
    namespace=F, method=False,
    saves={"self": "*", "target": "*", "weight": "*", "pos_weight": "*"},
)  # fmt: skip
def binary_cross_entropy_with_logits(
    input: Array, target: Array, weight: Array | None = None, pos_weight: Array | None = None,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    """Cross entropy of logits, without overflow; in the target's dtype, as in PyTorch."""
    reduction = reduction_name(None, None, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Target size ({torch_size(target.shape)}) must be the same as input size "
            f"({torch_size(input.shape)})"
        )
    need_float(input, "log_sigmoid_cpu")
    if pos_weight is not None:
        no_bool_difference(pos_weight, 1)
    if target.dtype == bool:
        no_bool_difference(True, target)  # as PyTorch's parser has it
    if category(target.dtype) < 2:
        raise RuntimeError(
            f"result type {scalar_name(input.dtype)} can't be cast to the desired output type "
            f"{scalar_name(target.dtype)}"
        )
    x, y = wide(input), wide(target)
    log = jax.nn.log_sigmoid(x)
    if pos_weight is not None:
        broadcast(pos_weight, target)
        pos_weight = jax.lax.stop_gradient(wide(pos_weight))
        log = log * ((pos_weight - 1) * y + 1)
    loss = (1 - y) * x - log
    if weight is not None:
        broadcast(loss, weight)
        loss = loss * jax.lax.stop_gradient(wide(weight))
    return cast(reduced(loss, reduction), target.dtype)


def _check_variances(input: Array) -> list[Fault]:
    return [Fault(input < 0, ValueError, "var has negative entry/entries")]


@op(function=False, method=False, differentiable=False, check=_check_variances)
def _variances(input: Array) -> Array:
    """Take the variances of `gaussian_nll_loss` as they are, if none is negative."""
    return input
