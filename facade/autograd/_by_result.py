"""Gradients that PyTorch takes from the result that an op saved, and from its operands.

They matter where the saved tensors are not what the op had: hooks unpack something else, or
`.data` was written to since. All other gradients are taken from the operands alone.
"""

from __future__ import annotations

import math
from typing import Any

from leafax.functional import TABLE

from .._record import apply
from ._formula_tools import Formula, dims_of
from ._formulas import FORMULAS, Saved


class Unpacked:
    """A node as formulas see nodes, some of whose saved tensors something else stands for."""

    def __init__(self, node: Any, packed: dict[int, Any]) -> None:
        self._node, self._packed = node, packed
        self.state, self.trace = node.state, node.trace
        self.name, self.next_edges = node.name, node.next_edges
        self.next_places = node.next_places
        self._seen: dict[int, Any] = {}

    def unpack(self, index: int) -> Any:
        if index not in self._seen:
            packed = self._packed.get(index)
            found = self._node.unpack(index) if packed is None else packed.unpack(self._node)
            self._seen[index] = found
        return self._seen[index]


def gradients(node: Any, grads: list[Any], needed: set[Any]) -> list[Any] | None:
    """What a node passes on by such a formula; None if there is none.

    Args:
      node: as formulas see it, the result among what it can unpack.
      needed: the nodes whose gradients are wanted.
    """
    from ._formulas import differentiate

    try:
        return differentiate(node, grads, needed, table=BY_RESULT)
    except KeyError:  # a case that has no formula here
        return None


def _whole(s: Saved) -> tuple[Any, Any, list[int]]:
    """The gradient and the result with the dims that were reduced, and which those are."""
    grad, result, dim = s.g, s.result, s.static("dim")
    ndim = len(s.shape())
    if dim is None or isinstance(dim, bool):
        return grad, result, list(range(ndim))
    dims = dims_of(dim, ndim)
    if not s.static("keepdim", False):
        for d in dims:
            grad, result = grad.unsqueeze(d), result.unsqueeze(d)
    return grad, result, dims


def _input(s: Saved) -> Any:
    x = s["input"]
    return x if x.dtype == s.g.dtype or x.is_complex() else x.to(s.g.dtype)


def _prod(s: Saved) -> Any:
    x, dim = _input(s), s.static("dim")
    if not x.dim():
        return s.g
    if not x.numel():
        return x.new_zeros(x.shape)
    grad, result, _ = _whole(s)
    there = grad * (result / x).conj()
    flat, d = (x.reshape(-1), 0) if dim is None else (x, dim)
    others = _product_of_others(flat, d).reshape(x.shape)
    return there.where(~(x == 0).any(), grad * others.conj())


def _product_of_others(x: Any, dim: int) -> Any:
    count = x.shape[dim]
    one, cat = x.new_ones(x.narrow(dim, 0, 1).shape), TABLE["cat"]
    before = apply(cat, [one, x.narrow(dim, 0, count - 1)], dim).cumprod(dim)
    after = apply(cat, [one, x.narrow(dim, 1, count - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return before * after


def _norm(s: Saved) -> Any:
    given = s.static("p", s.static("ord", 2))
    p = 2.0 if given in (None, "fro") else given
    if not isinstance(p, (int, float)):
        raise KeyError("a matrix norm")
    x, (grad, result, dims) = _input(s), _whole(s)
    if p == 2:
        return grad * (x / result).masked_fill(result == 0, 0)
    if p in (0, 1):
        raise KeyError("not by the result")
    size = x.abs()
    if math.isinf(p):
        most = (size == result) | size.isnan()
        return x.sgn() * (grad / most.sum(dims, keepdim=True) * most)
    if p < 1:
        scaled = x.sgn() * size.pow(p - 1).masked_fill(x == 0, 0)
        return scaled * grad * result.pow(1 - p)
    scaled = x.sgn() * size.pow(p - 1) if p < 2 else x * size.pow(p - 2)
    return scaled * (grad / result.pow(p - 1)).masked_fill(result == 0, 0)


def _logsumexp(s: Saved) -> Any:
    grad, result, _ = _whole(s)
    return grad * (_input(s) - result).exp().conj()


def _std(s: Saved) -> Any:
    x, (grad, result, dims) = s["input"], _whole(s)
    grad = (grad / (result * 2)).masked_fill(result == 0, 0)
    count = math.prod(x.shape[d] for d in dims)
    given, dim = s.static("correction"), s.static("dim")
    unbiased = dim if isinstance(dim, bool) else s.static("unbiased")
    correction = given if given is not None else 1 if unbiased is None else int(unbiased)
    over = max(count - correction, 0)
    mean = x.mean(dims, keepdim=True) if dims else x
    return (2.0 / over if over else math.inf) * grad * (x - mean)


def _extreme_of_all(s: Saved) -> Any:
    x, result = s["input"], s.result
    chosen = (x == result) | (x.isnan() & result.isnan())
    return s.g * (chosen / chosen.sum())


BY_RESULT: dict[str, dict[str, Formula]] = {
    "prod": {"input": _prod},
    "norm": {"input": _norm},
    "linalg.vector_norm": {"input": _norm},
    "linalg.norm": {"input": _norm},
    "logsumexp": {"input": _logsumexp},
    "std": {"input": _std},
    "max": {"input": _extreme_of_all},
    "min": {"input": _extreme_of_all},
    "median": {"input": _extreme_of_all},
    "hypot": {
        "input": lambda s: s.g * (s["input"] / s.result),
        "other": lambda s: s.g * (s["other"] / s.result),
    },
    **{
        name: FORMULAS[name]
        for name in ("pow", "exp2", "expm1", "tan", "softmax", "log_softmax", "amax", "amin")
    },
}
