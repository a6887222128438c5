"""Cross entropy and negative log likelihood for class indices and class probabilities."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.dtypes import scalar_name
from leafax.functional.program.op import TABLE

from ..._autograd.formulas.scalar_ops import over, plus, times
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._ops.autocast.casts import float32
from .._reduction import check_reduction, reduced, reduction_of
from .activations import need_tensor

_NLL, _NLL2D = TABLE["nn.functional.nll_loss"], TABLE["nn.functional.nll_loss2d"]
_LOG_SOFTMAX = TABLE["log_softmax"]


def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Minus the log probabilities at the target classes, weighted."""
    reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    return _nll(input, target, weight, reduction, ignore_index)


def _nll(input: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    ndim = len(input._v.shape)
    if ndim in (1, 2):
        return apply(_NLL, input, target, weight, reduction, ignore_index)
    out = [*input.shape[:1], *input.shape[2:]]
    if ndim < 3 or ndim == 4 or [*target.shape] != out or not input.numel():
        return apply(_NLL2D, input, target, weight, reduction, ignore_index)
    n, c = input.shape[:2]
    flat = input.contiguous().view(n, c, 1, -1)
    target = target.contiguous().view(n, 1, -1)
    loss = apply(_NLL2D, flat, target, weight, reduction, ignore_index)
    return loss.view(out) if reduction == "none" else loss


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Cross entropy of logits `(C,)` or `(N, C, ...)`.

    Args:
      target: int64 class indices `(N, ...)`, or class probabilities in the input's shape.
      weight: one factor a class, or None.
      ignore_index: targets of this class count for nothing.
      reduction: "mean" (weighted), "sum" or "none".
      label_smoothing: this much of each target is spread evenly over all classes.

    >>> import leafax
    >>> from leafax.nn import functional as F
    >>> F.cross_entropy(leafax.zeros(2, 4), leafax.tensor([0, 3]))
    tensor(1.3863)
    """
    if reduction != "mean" or size_average is not None or reduce is not None:
        reduction = check_reduction(reduction_of(size_average, reduce, reduction))
    return _entropy(input, target, weight, reduction, ignore_index, label_smoothing)


@in_one_step
@float32
def _entropy(
    input: Any, target: Any, weight: Any, reduction: str, ignore_index: int,
    label_smoothing: float,
) -> Any:  # fmt: skip
    try:
        shape, of_target = input._v.shape, target._v.shape
    except AttributeError:
        need_tensor("cross_entropy_loss", input)
        need_tensor("cross_entropy_loss", target, " (position 2)", "target")
        raise
    dim = 0 if len(shape) == 1 else 1
    if shape == of_target:
        return _probabilities(input, target, weight, reduction, ignore_index, label_smoothing, dim)
    logs = apply(_LOG_SOFTMAX, input, dim, input._v.dtype)
    loss = _nll(logs, target, weight, reduction, ignore_index)
    if label_smoothing <= 0.0:
        return loss
    _check_smoothing(label_smoothing)
    smooth = _smooth(logs, target, weight, reduction, ignore_index, dim)
    share = label_smoothing / logs.shape[dim]
    return times(loss, 1 - label_smoothing) + times(smooth, share)


def _check_smoothing(label_smoothing: float) -> None:
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")


def _along(weight: Any, input: Any, dim: int) -> Any:
    """`weight` shaped so that it broadcasts along the class dim."""
    return weight.view([-1 if i == dim else 1 for i in range(input.dim())])


def _smooth(
    logs: Any, target: Any, weight: Any, reduction: str, ignore_index: int, dim: int
) -> Any:
    terms = logs if weight is None else logs * _along(weight, logs, dim)
    loss = -terms.sum(dim)
    ignored = target == ignore_index
    loss = loss.masked_fill_(ignored, 0.0)
    if reduction != "mean":
        return reduced(loss, reduction)
    if weight is None:
        return loss.sum() / ignored.logical_not().sum()
    weights = weight.detach().index_select(0, target.masked_fill(ignored, 0).flatten())
    return loss.sum() / weights.masked_fill(ignored.flatten(), 0).sum()


def _probabilities(
    input: Any, target: Any, weight: Any, reduction: str, ignore_index: int,
    label_smoothing: float, dim: int,
) -> Any:  # fmt: skip
    if not target.is_floating_point():
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{scalar_name(target._v.dtype)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input.shape[dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    logs = apply(_LOG_SOFTMAX, input, dim, input._v.dtype)
    if label_smoothing > 0.0:
        _check_smoothing(label_smoothing)
        target = plus(times(target, 1 - label_smoothing), label_smoothing / classes)
    terms = logs * target
    if weight is not None:
        terms = terms * _along(weight, input, dim)
    if reduction == "none":
        return -terms.sum(dim)
    if reduction == "mean" and not input.numel():
        return -terms.sum().fill_(float("nan"))
    total = -terms.sum()
    if reduction == "sum":
        return total
    return over(total, input.numel() // classes)
