"""The gradients of `scatter_reduce(..., "prod")` and `index_reduce` as PyTorch's formulas spell it.

Where two zeros meet in one place, PyTorch's formula for `src` cannot be differentiated again: it
looks for them, and passes the gradient through a node that raises.
"""

from __future__ import annotations

from typing import Any

from .._active import active
from .._trace import local
from ._delayed import DelayedError

_TWICE = (
    "{op}(): Double backward is unsupported for {src} when >1 zeros in {src} are scattered to the "
    "same position in self"
)


def _source(s: Any) -> str:
    return "source" if "source" in s.given else "src"


def for_input(s: Any) -> Any:
    """The gradient of what is scattered into."""
    x, dim, index = s["input"], s.static("dim"), s["index"]
    safe = x.masked_fill(x == 0, 1)
    included = s.static("include_self", True)
    grad = (
        s.g * safe.scatter_reduce(dim, index, s[_source(s)], "prod", include_self=included) / safe
    )
    return grad if included else grad.scatter(dim, index, 0)


def for_src(s: Any) -> Any:
    """The gradient of what is scattered."""
    x, src, dim, index = s["input"], s[_source(s)], s.static("dim"), s["index"]
    zero = src == 0
    zeros = x.new_zeros(x.shape).scatter_add(dim, index, zero.to(x.dtype)).gather(dim, index)
    single = zero & (zeros == 1)
    included = s.static("include_self", True)
    others = x.scatter_reduce(dim, index, src.masked_fill(single, 1), "prod", include_self=included)
    grad = (s.g * s.result).gather(dim, index) / src.masked_fill(zero, 1)
    grad = (s.g * others).gather(dim, index).where(single, grad)
    look = not active.depth and not local.uncut  # a transform could not look at values
    if look and bool((zeros > 1).any()):
        name = s.node.state.call.op.name
        return DelayedError(_TWICE.format(op=name, src=_source(s)), 1)(grad)
    return grad


FORMULAS = {
    "scatter_reduce": {"input": for_input, "src": for_src},
    "index_reduce": {"input": for_input, "source": for_src},
}
