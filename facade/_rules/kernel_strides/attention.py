"""Strides of attention: PyTorch's fused kernel makes its result as its queries lie.

So `q.view(B, S, H, E).transpose(1, 2)` gives what needs no copy to be transposed back.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.program import Slot

from ..strides.layouts import Strides, copied, laid
from ..strides.of_results import OF_STRIDED


def attention_strides(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...] | None:
    """Lay out the results of attention as its queries; None where no fused kernel makes them."""
    if not is_fused(call, inputs):
        return None
    return (copied(laid(inputs[0])),) * len(avals)


OF_STRIDED["nn.functional.scaled_dot_product_attention"] = attention_strides


def is_fused(call: Any, inputs: list[Any]) -> bool:
    """Tell whether PyTorch has a kernel of its own for a call; others it makes of products."""
    query, key, value = inputs[:3]
    if not all(len(x.shape) == 4 and 0 not in x.shape for x in inputs[:3]):
        return False
    if len({x.shape[0] for x in inputs[:3]}) > 1 or len({x.shape[3] for x in inputs[:3]}) > 1:
        return False
    if not all(_by_rows(x) for x in inputs[:3]):
        return False
    grouped = call.kwargs.get("enable_gqa", call.args[7] if len(call.args) > 7 else False)
    if not grouped and not query.shape[1] == key.shape[1] == value.shape[1]:
        return False
    mask = inputs[3] if len(inputs) > 3 and type(call.args[3]) is Slot else None
    return mask is None or not mask.requires_grad


def _by_rows(value: Any) -> bool:
    """Tell whether the elements of each row lie side by side."""
    strides = value.strides or contiguous_strides(tuple(value.shape))
    return bool(strides[-1] == 1)
