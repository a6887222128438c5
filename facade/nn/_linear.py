"""`linear`, as PyTorch makes it: a matrix product with the transposed weight."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional import TABLE

from .._handle import Handle
from .._record import apply
from .._table import function
from .._trace import local

_linear = function(TABLE["nn.functional.linear"])


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Multiply by the transposed weight `(out, in)` and add the bias.

    Args:
      input: `(..., in)`.
      weight: `(out, in)`, or `(in,)` for results without the last dim.
      bias: `(out,)` or None.

    Raises:
      RuntimeError: for shapes that do not fit, and for operands of several dtypes.

    >>> import leafax
    >>> x = leafax.nn.functional.linear(leafax.ones(2, 3), leafax.ones(4, 3))
    >>> x.shape
    torch.Size([2, 4])
    """
    if not _plain(input, weight, bias):
        return _linear(input, weight, bias)  # with its errors
    turned = weight.t()
    if bias is None and input.dim() == 1:
        return apply(TABLE["mm"], input.unsqueeze(0), turned).squeeze_(0)
    if bias is None:
        return input.matmul(turned)
    if input.dim() == 2:
        return apply(TABLE["addmm"], bias, input, turned)
    shape = tuple(input.shape)
    rows = input.reshape(math.prod(shape[:-1]), shape[-1])
    return apply(TABLE["addmm"], bias, rows, turned).view((*shape[:-1], weight.shape[0]))


def _plain(input: Any, weight: Any, bias: Any) -> bool:
    """Whether the operands fit, so that nothing is left to say of them."""
    if local.mode.autocast is not None:
        return False
    if not isinstance(input, Handle) or not isinstance(weight, Handle):
        return False
    x, w = input._v, weight._v
    if len(w.shape) != 2 or not x.shape or x.dtype != w.dtype or w.dtype.kind == "b":
        return False
    if x.shape[-1] != w.shape[1]:
        return False
    if bias is None:
        return True
    return isinstance(bias, Handle) and bias._v.shape == w.shape[:1] and bias._v.dtype == w.dtype
