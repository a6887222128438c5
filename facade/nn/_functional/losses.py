"""Losses of a prediction and a target, composed of ops as PyTorch composes them."""

from __future__ import annotations

import math
import warnings
from typing import Any

from leafax.functional.program.op import TABLE

from ..._autograd.formulas.scalar_ops import plus, times
from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.trie import local
from ..._dispatch.record import apply
from ..._ops.autocast.casts import float32
from ..._ops.composites.shapes import broadcast_shapes
from ..._ops.creation.factories import ones_like
from .._reduction import check_reduction, expanded, reduced, reduction_of, weighted

_F = {n: TABLE["nn.functional." + n] for n in (
    "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "logsigmoid",
)}  # fmt: skip


def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Squared differences."""
    reduction = reduction_of(size_average, reduce, reduction)
    a, b = expanded(input, target)
    if weight is not None:
        return weighted((a - b).pow(2), weight, input, reduction, lambda x: x.sum() / weight.sum())
    return apply(_F["mse_loss"], a, b, check_reduction(reduction))


def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Absolute differences."""
    reduction = reduction_of(size_average, reduce, reduction)
    a, b = expanded(input, target)
    if weight is not None:
        return weighted((a - b).abs(), weight, input, reduction, lambda x: x.sum() / weight.sum())
    return _l1(a, b, check_reduction(reduction))


@float32
def _l1(a: Any, b: Any, reduction: str) -> Any:
    return reduced((a - b).abs(), reduction)


def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """Squared differences below `beta`, absolute ones above."""
    reduction = reduction_of(size_average, reduce, reduction)
    a, b = expanded(input, target)
    check_reduction(reduction)
    if beta == 0.0:
        return _l1(a, b, reduction)
    return apply(_F["smooth_l1_loss"], a, b, reduction, beta)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Half the squared differences up to `delta`, linear above."""
    a, b = expanded(input, target)
    if weight is None:
        return apply(_F["huber_loss"], a, b, check_reduction(reduction), delta)
    loss = apply(_F["huber_loss"], a, b, "none", delta)
    return weighted(loss, weight, input, reduction, lambda x: x.mean())


def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """`log(1 + exp(-target * input))`."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    return apply(_F["soft_margin_loss"], input, target, reduction)


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Cross entropy of probabilities."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(broadcast_shapes(target.size(), weight.size()))
    return apply(_F["binary_cross_entropy"], input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """Cross entropy of logits."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    target.size(), input.size()  # compared by PyTorch before it asks whether they are tensors
    op = _F["binary_cross_entropy_with_logits"]
    return apply(op, input, target, weight, pos_weight, reduction)


@float32
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative log likelihood of counts, up to Stirling's term (added if `full`)."""
    reduction = reduction_of(size_average, reduce, reduction)
    for at, name, x in ((1, "input", input), (2, "target", target)):
        if not isinstance(x, Handle):
            raise TypeError(
                f"poisson_nll_loss(): argument '{name}' (position {at}) must be Tensor, not "
                f"{type(x).__name__}"
            )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    if log_input:
        product = target * input  # what PyTorch takes first, backward comes to last
        loss = input.exp() - product
    else:
        loss = input - target * plus(input, eps).log()
    if full:
        rest = times(times(target, 2 * math.pi).log(), 0.5)
        stirling = target * target.log() - target + rest
        loss = loss.add_(stirling.masked_fill(target <= 1, 0))
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative log likelihood of normal distributions with variances `var`."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ones_like(input)
    elif var._array is None and local.vmap is None:  # what a model predicts: not computed yet
        apply(TABLE["_variances"], var.detach())
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        differing = [m for n, m in zip(input.size(), var.size(), strict=False) if n != m]
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.ndim == var.ndim and sum(differing) == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """Kullback-Leibler divergence of `target` from log probabilities `input`."""
    how = reduction
    if size_average is not None or reduce is not None:
        how = reduction_of(size_average, reduce, reduction)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
            "major release.",
            stacklevel=2,
        )
    elif reduction == "batchmean":
        how = "sum"
    out = divergence(input, target, check_reduction(how), log_target)
    if reduction == "batchmean" and input.dim() != 0:
        out = out / input.size()[0]
    return out


@float32
def divergence(input: Any, target: Any, reduction: str, log_target: bool) -> Any:
    """`kl_div` without what is deprecated of its arguments."""
    kinds = {input._v.dtype.kind, target._v.dtype.kind}
    if "c" in kinds:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not kinds <= {"f", "V"}:  # V: bfloat16
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        apart = target - input  # what PyTorch takes first, backward comes to last
        loss = target.exp() * apart
    else:
        cross = target * input
        loss = target.xlogy(target) - cross
    return reduced(loss, reduction)


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Binary cross entropy of logits, averaged over classes."""
    reduction = reduction_of(size_average, reduce, reduction)
    op = _F["logsigmoid"]
    loss = -(target * apply(op, input) + (1 - target) * apply(op, -input))
    if weight is not None:
        loss = loss * weight
    dim = input.dim() - 1
    loss = loss.sum(dim=dim) / input.size(dim)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduced(loss, reduction)
