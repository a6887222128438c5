"""Losses that compare distances and similarities with a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._autograd.formulas.scalar_ops import minus, plus
from ..._core.handle import Handle
from ..._dispatch.record import apply
from ..._ops.autocast.casts import float32
from ..._ops.creation.factories import zeros_like
from ..._ops.creation.from_data import tensor
from .._reduction import check_reduction, reduced, reduction_of
from .ctc_checks import check_counts, check_shapes, check_targets, lengths_of

_SUB = TABLE["sub"]


def _where(condition: Any, a: Any, b: Any) -> Any:
    return apply(TABLE["where"], condition, a, b)


def _distance(a: Any, b: Any, p: float = 2.0, eps: float = 1e-6) -> Any:
    return apply(TABLE["pairwise_distance"], a, b, float(p), eps)


@float32
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`max(0, -target * (input1 - input2) + margin)`."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    apart = input1 - input2  # what PyTorch takes first, backward comes to last
    return reduced(plus(-target * apart, margin).clamp_min(0), reduction)


@float32
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`input` where the target is 1, `max(0, margin - input)` where it is -1."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    zeros = zeros_like(input)
    far = _where(target != 1, apply(_SUB, margin, input).clamp_min(0), zeros)
    return reduced(far + _where(target != -1, input, zeros), reduction)


@float32
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    dim = target.dim()
    if dim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if (input1.dim(), input2.dim()) != (dim + 1, dim + 1):
        raise RuntimeError(
            f"{dim}D target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    product = (input1 * input2).sum(dim)
    square1 = plus((input1 * input1).sum(dim), 1e-12)
    square2 = plus((input2 * input2).sum(dim), 1e-12)
    cos = product / (square1 * square2).sqrt()
    zeros = zeros_like(cos)
    near, far = apply(_SUB, 1, cos), minus(cos, margin).clamp_min(0)
    near = _where(target == 1, near, zeros)
    return reduced(near + _where(target == -1, far, zeros), reduction)


def _same_dims(anchor: Any, positive: Any, negative: Any) -> None:
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`max(0, margin + |anchor - positive| - |anchor - negative|)` in the p-norm."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return triplet_margin(anchor, positive, negative, margin, p, eps, swap, reduction)


@float32
def triplet_margin(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool,
    reduction: str,
) -> Any:  # fmt: skip
    """`triplet_margin_loss` for any margin."""
    _same_dims(anchor, positive, negative)
    near = _distance(anchor, positive, p, eps)
    far = _distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(_distance(positive, negative, p, eps))
    return reduced((plus(near, margin) - far).clamp_min(0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *,
    distance_function: Callable[[Any, Any], Any] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`triplet_margin_loss` with any distance."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _same_dims(anchor, positive, negative)
    distance = distance_function or _distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Measure how far other classes come within `margin` of the target's score."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    op = TABLE["nn.functional.multi_margin_loss"]
    return apply(op, input, target, p, margin, weight, reduction)


def multilabel_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Margins between target classes and all others."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    return apply(TABLE["nn.functional.multilabel_margin_loss"], input, target, reduction)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Connectionist temporal classification: `log_probs` `(T, N, C)`, `targets` padded or joined.

    Joined targets, a vector, are taken apart by `target_lengths`, which runs the program.
    """
    reduction = check_reduction(reduction)
    batched = log_probs.dim() == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0)
    given = lengths_of(input_lengths, "input_lengths"), lengths_of(target_lengths, "target_lengths")
    check_shapes(log_probs, targets, blank)
    check_counts(log_probs, *given)
    lengths = [
        x.reshape(-1).long() if isinstance(x, Handle) else tensor([*x]).long() for x in given
    ]
    sizes = None if isinstance(given[1], Handle) else [int(n) for n in given[1]]
    if targets.dim() == 1:
        sizes = [int(n) for n in lengths[1].tolist()]
    check_targets(targets, log_probs.shape[1], sizes)
    if targets.dim() == 1:
        assert sizes is not None
        rows = targets.new_zeros((len(sizes), max(sizes, default=0)))
        start = 0
        for i, n in enumerate(sizes):
            rows[i, :n] = targets[start : start + n]
            start += n
        targets = rows
    op = TABLE["nn.functional._ctc_loss"]
    loss = apply(op, log_probs, targets.long(), *lengths, int(blank), bool(zero_infinity))
    if zero_infinity:
        loss = _where(loss == float("inf"), zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / lengths[1].clamp_min(1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)
