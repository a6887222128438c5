"""Results that PyTorch's kernels compute on the way and its nodes save: `grad_fn._saved_result1`.

Gradients do not read these here, so they are worked out from what is saved when someone asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.grad_modes import no_grad
from ..._dispatch.record import apply


def hidden_result(name: str, kept: Any) -> Any:
    """Compute the tensor `grad_fn._saved_<name>` of a recorded call.

    Raises:
      KeyError: if the node has none of that name.
    """
    rule = _RULES[kept.call.op.qualified, name]
    with no_grad():
        return rule(kept)


def _operand(kept: Any, name: str) -> Any:
    """Get a saved operand without its history, None where it was not given."""
    places = kept.slots.get(name)
    return kept.unpack(places[0]).detach() if places else None


def _indices(function: str) -> Callable[[Any], Any]:
    """Compute where the maxima of a pooling lie."""

    def rule(kept: Any) -> Any:
        rest = {name: kept.static(name) for name in kept.call.op.parameters[1:]}
        op = TABLE[f"nn.functional.{function}_with_indices"]
        return apply(op, _operand(kept, "input"), **rest)[1]

    return rule


def _factors(k: int, turned: bool = False) -> Callable[[Any], Any]:
    """Get the LU factors of a matrix, or its pivots.

    Args:
      turned: of its transpose, which PyTorch takes where that needs no copy.
    """

    def rule(kept: Any) -> Any:
        a = _operand(kept, "A")
        a = a.mT if turned and a.is_contiguous() else a
        return apply(TABLE["linalg.lu_factor"], a)[k]

    return rule


def _statistic(dims: Callable[[Any, Any], Any], k: int) -> Callable[[Any], Any]:
    """Compute a mean over dims, or one over the deviation: Ioffe & Szegedy (2015), alg. 1.

    Args:
      dims: gives the input in the shape that is reduced, the dims, and whether they stay; None
        for them where nothing was computed.
    """

    def rule(kept: Any) -> Any:
        x, over = dims(kept, _operand(kept, "input"))
        if over is None:
            return x.new_empty((0,))
        if k == 0:
            return x.mean(over[0], keepdim=over[1])
        return (x.var(over[0], correction=0, keepdim=over[1]) + kept.static("eps")).rsqrt()

    return rule


def _last(kept: Any, x: Any) -> Any:
    return x, (tuple(range(x.dim() - len(kept.static("normalized_shape")), x.dim())), True)


def _groups(kept: Any, x: Any) -> Any:
    shape = kept.static("N"), kept.static("group")
    return x.reshape(*shape, x.numel() // max(1, shape[0] * shape[1])), (-1, False)


def _channels(kept: Any, x: Any) -> Any:
    if not kept.static("training"):  # the running ones are used
        return x, None
    return x, ((0, *range(2, x.dim())), False)


def _total_weight(kept: Any) -> Any:
    """Compute the sum of the weights of all labels that count."""
    labels, weight = _operand(kept, "target"), _operand(kept, "weight")
    counts = labels != kept.static("ignore_index")
    if weight is None:
        weight = _operand(kept, "input").new_ones(kept.shape("input")[1 if labels.dim() else 0])
    return (weight[labels * counts] * counts).sum()


def _is_target(kept: Any) -> Any:
    """Ones at the classes that are told before the first -1."""
    target, x = _operand(kept, "target"), _operand(kept, "input")
    counts = (target >= 0).cumprod(-1)
    found = x.new_zeros(x.shape).scatter_add_(-1, target * counts, counts.to(x.dtype))
    return found.clamp_(max=1)


def _logsumexp(kept: Any) -> Any:
    """Compute the log of the sum of exponentials of each query's scores."""
    query, key, mask = (_operand(kept, name) for name in ("query", "key", "attn_mask"))
    given = kept.static("scale")
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if given is None else given)
    if kept.static("is_causal"):
        mask = scores.new_ones(scores.shape[-2:]).tril().bool()
    if mask is not None:
        masked = mask.dtype.is_floating_point
        scores = scores + mask if masked else scores.masked_fill(~mask, float("-inf"))
    return scores.logsumexp(-1)


_LAYER_NORMS = ("nn.functional.layer_norm", "native_layer_norm")
_RULES: dict[tuple[str, str], Callable[[Any], Any]] = {
    **{
        (f"nn.functional.{name}", "result1"): _indices(name)
        for name in ("max_pool2d", "max_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
    },
    ("linalg.det", "LU"): _factors(0, turned=True),
    ("linalg.det", "pivots"): _factors(1, turned=True),
    ("linalg.slogdet", "LU"): _factors(0, turned=True),
    ("linalg.slogdet", "pivots"): _factors(1, turned=True),
    **{(f"linalg.{name}", "LU"): _factors(0) for name in ("solve", "solve_ex")},
    **{(f"linalg.{name}", "pivots"): _factors(1) for name in ("solve", "solve_ex")},
    ("nn.functional.logsigmoid", "buffer"): lambda k: (-_operand(k, "input").abs()).exp(),
    ("nn.functional.multilabel_margin_loss", "is_target"): _is_target,
    **{(op, "result1"): _statistic(_last, 0) for op in _LAYER_NORMS},
    **{(op, "result2"): _statistic(_last, 1) for op in _LAYER_NORMS},
    ("native_group_norm", "result1"): _statistic(_groups, 0),
    ("native_group_norm", "result2"): _statistic(_groups, 1),
    ("nn.functional._native_batch_norm", "result1"): _statistic(_channels, 0),
    ("nn.functional._native_batch_norm", "result2"): _statistic(_channels, 1),
    ("nn.functional.scaled_dot_product_attention", "logsumexp"): _logsumexp,
    ("nn.functional.nll_loss", "total_weight"): _total_weight,
    ("nn.functional.nll_loss2d", "total_weight"): _total_weight,
}  # fmt: skip
