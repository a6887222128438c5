"""Margin losses over classes, and connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import scalar_name
from ...program.op import Fault, op
from ..elementwise.operands import with_jvp
from .checks import need_float, reduced, reduction_name, size_list

Array = jax.Array

F = "nn.functional"


def _rows(input: Array, target: Array) -> Array:
    if input.ndim > 2 or input.shape[-1:] == (0,):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{size_list(input.shape)}"
        )
    return jnp.atleast_2d(input)


def _check_multi_margin(
    input: Array, target: Array, p: int = 1, margin: Any = 1.0, weight: Array | None = None,
    reduction: str = "mean",
) -> list[Fault]:  # fmt: skip
    bad = (target < 0) | (target >= jnp.atleast_2d(input).shape[-1])
    return [Fault(bad, RuntimeError, "target out of range")]


@op(namespace=F, method=False, check=_check_multi_margin, saves={"self": "*", "target": "*"})
def multi_margin_loss(
    input: Array, target: Array, p: int = 1, margin: Any = 1.0, weight: Array | None = None,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    """Sum how far other classes come within `margin` of the target's score, per class."""
    reduction = reduction_name(None, None, reduction)
    x = _rows(input, target)
    count = 1 if input.ndim < 2 else input.shape[0]
    one = input.ndim < 2 and target.ndim == 0  # an example without a batch
    if not one and target.shape != (count,):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{count}], but got "
            f"{size_list(target.shape)}. Input has shape {size_list(input.shape)}."
        )
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and weight.shape[0] != x.shape[1]:
        raise RuntimeError(
            f"inconsistent weight size, expected {x.shape[1]} but got {size_list(weight.shape)}"
        )
    need_float(x, "multi_margin_loss_cpu_kernel", halves=False)
    if target.dtype != np.dtype("int64"):
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")
    index = target.reshape(-1).astype(np.int64)
    own = jnp.take_along_axis(x, index[:, None], 1, mode="clip")
    excess = margin - own + x
    loss = jnp.where(excess > 0, excess, jnp.zeros((), x.dtype)) ** p
    if weight is not None:
        loss = loss * jnp.take(weight, index, mode="clip")[:, None]
    others = jnp.arange(x.shape[1]) != index[:, None]
    loss = jnp.where(others, loss, jnp.zeros((), x.dtype)).sum(1) / x.shape[1]
    return reduced(loss if target.ndim else loss[0], reduction)


def _check_labels(input: Array, target: Array, reduction: str = "mean") -> list[Fault]:
    classes = input.shape[-1] if input.ndim else 1
    bad = (target < -1) | (target >= max(classes, 1))
    return [Fault(bad, RuntimeError, "argument #2 'target' is out of range")]


@op(namespace=F, method=False, saves={"self": "*", "target": "*"}, check=_check_labels)
def multilabel_margin_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """Sum margins between target classes (up to the first -1 of a row) and all others."""
    reduction = reduction_name(None, None, reduction)
    x = _rows(input, target)
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {size_list(target.shape)} for input of size: "
            f"{size_list(input.shape)}"
        )
    need_float(x, "multilabel_margin_loss_forward_out_frame", halves=False)
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")
    y = target.reshape(x.shape)
    classes = x.shape[1]
    listed = jnp.cumsum(y < 0, axis=1) == 0
    places = jnp.where(listed, y, 0)
    is_target = ((places[..., None] == jnp.arange(classes)) & listed[..., None]).any(1)
    own = jnp.take_along_axis(x, places, 1)
    excess = 1 - own[:, :, None] + x[:, None, :]
    counted = listed[:, :, None] & ~is_target[:, None, :] & (excess > 0)
    loss = jnp.where(counted, excess, jnp.zeros((), x.dtype)).sum((1, 2)) / classes
    return reduced(loss if input.ndim > 1 else loss[0], reduction)


def _check_lengths(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int,
    zero_infinity: bool = False,
) -> list[Fault]:  # fmt: skip
    steps = log_probs.shape[0]
    text = "Expected input_lengths to have value at {} {}, but got value {{value}} (while checking "
    text += "arguments for ctc_loss_allocate_outputs)"
    room = targets.shape[1]
    wide = f"Expected tensor to have size at least {{value}} at dimension 1, but got size {room} "
    wide += "for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
    least = text.replace("input_", "target_").format("least", 0)
    longest = jnp.max(target_lengths, initial=0)
    return [
        Fault(target_lengths < 0, RuntimeError, least, target_lengths),
        Fault(longest > room, RuntimeError, wide, longest),
        Fault(input_lengths < 0, RuntimeError, text.format("least", 0), input_lengths),
        Fault(input_lengths > steps, RuntimeError, text.format("most", steps), input_lengths),
    ]


@op(namespace=F, name="_ctc_loss", check=_check_lengths, method=False,
    backward="CtcLossBackward0", residuals=True,
    saves={"log_probs": "*", "targets": "*"})  # fmt: skip
def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int,
    zero_infinity: bool = False,
) -> Array:  # fmt: skip
    """Compute minus the log likelihood of padded `targets` `(N, S)` under `log_probs` `(T, N, C)`.

    With `zero_infinity` the gradient where it is infinite is that of 0.
    """
    if log_probs.dtype not in (np.float32, np.float64):
        kind = scalar_name(np.dtype(log_probs.dtype))
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{kind}'")
    time, batch, _ = log_probs.shape
    size = targets.shape[1]
    low = jnp.full((), -np.inf, log_probs.dtype)
    labels = jnp.full((batch, 2 * size + 1), blank, targets.dtype).at[:, 1::2].set(targets)
    before = jnp.pad(labels, ((0, 0), (2, 0)), constant_values=-1)[:, :-2]
    skips = (labels != blank) & (labels != before)
    at = jnp.arange(2 * size + 1)
    rows = jnp.broadcast_to(labels[None], (time, *labels.shape))
    scores = jnp.take_along_axis(log_probs, rows, 2, mode="clip")

    def add(a: Array, b: Array) -> Array:
        top = jax.lax.stop_gradient(jnp.maximum(a, b))
        safe = jnp.where(top == low, jnp.zeros((), top.dtype), top)
        total = jnp.exp(a - safe) + jnp.exp(b - safe)
        some = total > 0
        return jnp.where(some, jnp.log(jnp.where(some, total, 1)) + safe, low)

    def step(alpha: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        score, t = row
        one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=-np.inf)[:, :-1]
        two = jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=-np.inf)[:, :-2]
        new = add(add(alpha, one), jnp.where(skips, two, low)) + score
        return jnp.where((t < input_lengths)[:, None], new, alpha), None

    start = jnp.where((at < 2) & (at <= 2 * target_lengths[:, None]), scores[0], low)
    start = jnp.where((input_lengths > 0)[:, None], start, jnp.where(at == 0, 0.0, low))
    alpha, _ = jax.lax.scan(step, start, (scores[1:], jnp.arange(time - 1) + 1))
    last = 2 * target_lengths[:, None]
    end = jnp.take_along_axis(alpha, last, 1)[:, 0]
    other = jnp.take_along_axis(alpha, jnp.maximum(last - 1, 0), 1)[:, 0]
    loss = -add(end, jnp.where(target_lengths > 0, other, low))
    # PyTorch's gradient is that of the scores before `log_softmax`: exp(log_probs) more. Behind
    # `log_softmax` the two are the same.
    used = (jnp.arange(time)[:, None] < input_lengths)[..., None]
    mass = jnp.where(used, jnp.exp(log_probs), jnp.zeros((), log_probs.dtype)).sum((0, 2))
    if not zero_infinity:  # of what is impossible the gradient is NaN, while the input lasts
        mass = _lost(mass, jax.lax.stop_gradient(loss))
    return loss + (mass - jax.lax.stop_gradient(mass))


def _lost_tangent(result: Array, primals: Any, tangents: Any) -> Any:
    (_, loss), (dx, _) = primals, tangents
    return dx * jnp.where(jnp.isinf(loss), jnp.full((), np.nan, loss.dtype), 1)


# The mass itself, with a derivative of NaN where the loss is infinite.
_lost = with_jvp(lambda mass, loss: mass, _lost_tangent)
