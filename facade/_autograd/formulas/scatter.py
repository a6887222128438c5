"""The gradients of `scatter_reduce` and `index_reduce` as PyTorch's formulas spell them.

Where two zeros meet in one place, PyTorch's formula for the factors of a product cannot be
differentiated again: it looks for them, and passes the gradient through a node that raises.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.indexing.scatter import REDUCTION_NAMES

from ..._core.transforms_running import active
from ..._core.trie import local
from ..graph.delayed_error import DelayedError
from .tools import Formula, NoFormula

_TWICE = (
    "{op}(): Double backward is unsupported for {src} when >1 zeros in {src} are scattered to the "
    "same position in self"
)


class _Places:
    """Positions at which an op puts what it reduces: one by one, or whole rows."""

    def __init__(self, s: Any) -> None:
        self.rows = s.node.state.call.op.name == "index_reduce"
        self.dim, self.index = s.static("dim"), s["index"]
        self.name = "source" if self.rows else "src"
        if self.rows:  # the index of the rows was spread over their elements
            self.index = _of_rows(self.index, self.dim)

    def taken(self, x: Any) -> Any:
        """Read what lies there."""
        if self.rows:
            return x.index_select(self.dim, self.index)
        return x.gather(self.dim, self.index)

    def added(self, x: Any, to: Any) -> Any:
        if self.rows:
            return to.index_add(self.dim, self.index, x)
        return to.scatter_add(self.dim, self.index, x)

    def multiplied(self, x: Any, to: Any, included: bool = True) -> Any:
        op = to.index_reduce if self.rows else to.scatter_reduce
        return op(self.dim, self.index, x, "prod", include_self=included)

    def cleared(self, x: Any) -> Any:
        """Zeros there."""
        op = x.index_fill if self.rows else x.scatter
        return op(self.dim, self.index, 0)


def _of_rows(index: Any, dim: int) -> Any:
    if not index.numel():
        raise NoFormula("no rows")
    if not index.dim():
        return index.reshape(1)
    return index.movedim(dim, 0).reshape(index.shape[dim], -1).select(1, 0)


def _for_input(s: Any) -> Any:
    """Compute the gradient of what is scattered into."""
    grad = _INPUT[_reduction(s)](s)
    return grad if s.static("include_self", True) else _Places(s).cleared(grad)


def _for_source(s: Any) -> Any:
    """Compute the gradient of what is scattered."""
    return _SOURCE[_reduction(s)](s)


def _reduction(s: Any) -> str:
    reduce = str(s.static("reduce"))
    return REDUCTION_NAMES.get(reduce, reduce)


def _counts(s: Any) -> Any:
    """Count what each mean was taken of."""
    places, shape = _Places(s), s.shape()
    ones = s.g.new_ones(shape) if s.static("include_self", True) else s.g.new_zeros(shape)
    count = places.added(s.g.new_ones(s.shape(places.name)), ones)
    return count.masked_fill(count == 0, 1)


def _mean_of_source(s: Any) -> Any:
    places = _Places(s)
    return places.taken(s.g) / places.taken(s.once(_counts))


def _extremes(s: Any) -> tuple[Any, Any, Any]:
    """Mark which of both are what was found, with each one's share of the gradient."""
    places, result = _Places(s), s.result
    mine = (s["input"] == result).to(s.g.dtype)
    theirs = (s[places.name] == places.taken(result)).to(s.g.dtype)
    return mine, theirs, s.g / places.added(theirs, mine)


def _extreme_of_input(s: Any) -> Any:
    mine, _, share = s.once(_extremes)
    return mine * share


def _extreme_of_source(s: Any) -> Any:
    _, theirs, share = s.once(_extremes)
    return theirs * _Places(s).taken(share)


def _factor_of_input(s: Any) -> Any:
    places, x = _Places(s), s["input"]
    safe = x.masked_fill(x == 0, 1)
    product = places.multiplied(s[places.name], safe, s.static("include_self", True))
    return s.g * product / safe


def _factor_of_source(s: Any) -> Any:
    places, x = _Places(s), s["input"]
    src = s[places.name]
    zero = src == 0
    zeros = places.taken(places.added(zero.to(x.dtype), x.new_zeros(x.shape)))
    single = zero & (zeros == 1)
    others = places.multiplied(src.masked_fill(single, 1), x, s.static("include_self", True))
    grad = places.taken(s.g * s.result) / src.masked_fill(zero, 1)
    grad = places.taken(s.g * others).where(single, grad)
    look = not active.depth and not local.cuts.uncut  # a transform could not look at values
    if look and bool((zeros > 1).any()):
        name = s.node.state.call.op.name
        return DelayedError(_TWICE.format(op=name, src=places.name), 1)(grad)
    return grad


_INPUT: dict[str, Formula] = {
    "sum": lambda s: s.g,
    "mean": lambda s: s.g / s.once(_counts),
    "prod": _factor_of_input,
    "amax": _extreme_of_input,
    "amin": _extreme_of_input,
}
_SOURCE: dict[str, Formula] = {
    "sum": lambda s: _Places(s).taken(s.g),
    "mean": _mean_of_source,
    "prod": _factor_of_source,
    "amax": _extreme_of_source,
    "amin": _extreme_of_source,
}

FORMULAS: dict[str, dict[str, Formula]] = {
    "scatter_reduce": {"input": _for_input, "src": _for_source},
    "index_reduce": {"input": _for_input, "source": _for_source},
}
