"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.typename import typename
from ..._ops.calls.functions import function
from ..._tensor.tensor import Tensor

cat = function(TABLE["cat"])


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Return the elements of all parameters, one after the other, `(n,)`."""
    return cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Write each part of a vector into its parameter.

    Raises:
      TypeError: `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()
