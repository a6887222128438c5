"""`linear`, as PyTorch makes it: a matrix product with the transposed weight."""

from __future__ import annotations

from math import prod
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._dispatch.tangents import get_tangent
from ..._ops.autocast.casts import operands
from ..._ops.calls.functions import function
from ..._ops.composites.matmul import product

_LINEAR, _ADDMM, _T = TABLE["nn.functional.linear"], TABLE["addmm"], TABLE["t"]
_RESHAPE, _VIEW = TABLE["reshape"], TABLE["view"]
_linear = function(_LINEAR)


@in_one_step
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Multiply by the transposed weight `(out, in)` and add the bias.

    Args:
      input: `(..., in)`.
      weight: `(out, in)`, or `(in,)` for results without the last dim.
      bias: `(out,)` or None; what else broadcasts to the result is added to it.

    Raises:
      RuntimeError: for shapes that do not fit, and for operands of several dtypes.

    >>> import leafax
    >>> x = leafax.nn.functional.linear(leafax.ones(2, 3), leafax.ones(4, 3))
    >>> x.shape
    torch.Size([2, 4])
    """
    if not isinstance(input, Handle) or not isinstance(weight, Handle):
        return _linear(input, weight, bias)  # with its errors
    if bias is not None and not isinstance(bias, Handle):
        raise TypeError(
            f"linear(): argument 'bias' (position 3) must be Tensor, not {name_of_type(bias)}"
        )
    if local.mode.autocast is not None:
        input, weight, bias = operands(_LINEAR, (input, weight, bias))
    shape = input._v.shape
    if not shape or not weight._v.shape:
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are "
            f"{len(shape)}D and {len(weight._v.shape)}D"
        )
    turned = apply(_T, weight)
    if len(shape) == 2 and bias is not None:
        return apply(_ADDMM, bias, input, turned)
    if bias is None:
        return product(input, turned)
    if len(bias._v.shape) == 1 and input.is_contiguous():  # type: ignore[attr-defined]
        rows = apply(_RESHAPE, input, (prod(shape[:-1]), shape[-1]))
        made = apply(_ADDMM, bias, rows, turned)
        return apply(_VIEW, made, (*shape[:-1], made._v.shape[1]))
    made = product(input, turned)
    if local.mode.dual and get_tangent(bias, local.mode.dual[0]) is not None:
        return made + bias
    return made.add_(bias)
