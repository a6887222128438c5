"""Losses with the arguments of PyTorch's ATen functions, whose `reduction` is a number.

It is 0, none, where the caller says nothing: the mean that PyTorch's signatures name is lost on the
way to Python.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from .._dispatch.record import apply
from ..nn._functional import losses, margin_losses


def _name(reduction: int) -> str:
    """Return the reduction of a number; PyTorch takes what it does not know for none."""
    return {1: "mean", 2: "sum"}.get(reduction, "none")


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 0
) -> Any:
    """Cross entropy of logits."""
    op = TABLE["nn.functional.binary_cross_entropy_with_logits"]
    return apply(op, input, target, weight, pos_weight, _name(reduction))


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0
) -> Any:
    """`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1."""
    loss = margin_losses.cosine_embedding_loss
    return loss(input1, input2, target, margin, reduction=_name(reduction))


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 0) -> Any:
    """`input` where the target is 1, `max(0, margin - input)` where it is -1."""
    loss = margin_losses.hinge_embedding_loss
    return loss(input, target, margin, reduction=_name(reduction))


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0
) -> Any:
    """`max(0, -target * (input1 - input2) + margin)`."""
    loss = margin_losses.margin_ranking_loss
    return loss(input1, input2, target, margin, reduction=_name(reduction))


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-6, swap: bool = False, reduction: int = 0,
) -> Any:  # fmt: skip
    """`max(0, margin + |anchor - positive| - |anchor - negative|)` in the p-norm."""
    op = margin_losses.triplet_margin
    return op(anchor, positive, negative, margin, p, eps, swap, _name(reduction))


def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """Kullback-Leibler divergence of `target` from log probabilities `input`."""
    return losses.divergence(input, target, _name(reduction), log_target)


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    """Negative log likelihood of counts."""
    how = _name(reduction)
    return losses.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: int = 0, zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Connectionist temporal classification."""
    lengths = (input_lengths, target_lengths)
    loss = margin_losses.ctc_loss
    return loss(log_probs, targets, *lengths, blank, _name(reduction), zero_infinity)
