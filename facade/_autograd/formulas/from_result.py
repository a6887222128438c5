"""Gradients that PyTorch takes from the result that an op saved, and from its operands.

They matter where the saved tensors are not what the op had: hooks unpack something else, or
`.data` was written to since. All other gradients are taken from the operands alone.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.number_limits import finfo
from ..._core.trie import local
from ..._dispatch.record import apply
from ..._rules.inplace_activation_slopes import SELU_ALPHA, SELU_SCALE
from ..engine.record_gradient import record_saved
from .differentiate import FORMULAS, Saved, differentiate
from .matrix import OF_RESULT
from .rearrange import of_variance, summed_up, with_mean
from .scalar_ops import times
from .tools import Formula, NoFormula, dims_of


def from_result(
    node: Any, grads: list[Any], needed: set[Any], twice: bool = False
) -> list[Any] | None:  # fmt: skip
    """Take what a node passes on from its result; None where there is no such formula.

    Args:
      node: as formulas see it, the result among what it can unpack.
      needed: the nodes whose gradients are wanted.
      twice: for a graph that is differentiated again, which not all of the formulas are good for.
    """
    if twice:
        op = getattr(node.state.call, "op", None)
        if op is None or op.qualified not in _TWICE:
            return None
    try:
        return differentiate(node, grads, needed, table=BY_RESULT)
    except KeyError:  # the formula reads what hooks did not keep
        return None


def _whole(s: Saved, name: str = "input") -> tuple[Any, Any, list[int]]:
    """Compute the gradient and the result with the dims that were reduced, and which those are."""
    grad, result, dim = s.g, s.result, s.static("dim")
    ndim = len(s.shape(name))
    if dim is None or isinstance(dim, bool):
        return grad, result, list(range(ndim))
    dims = dims_of(dim, ndim)
    if not s.static("keepdim", False):
        for d in dims:
            grad, result = grad.unsqueeze(d), result.unsqueeze(d)
    return grad, result, dims


def _input(s: Saved, name: str = "input") -> Any:
    x = s[name]
    return x if x.dtype == s.g.dtype or x.is_complex() else x.to(s.g.dtype)


def _prod(s: Saved) -> Any:
    x, dim = _input(s), s.static("dim")
    if not x.dim():
        return s.g
    if not x.numel():
        return x.new_zeros(x.shape)
    grad, result, _ = _whole(s)
    zero = x == 0
    there = grad * (result / x.where(~zero, 1)).conj()  # lies as x does
    flat, d = (x.reshape(-1), 0) if dim is None else (x, dim)
    others = _product_of_others(flat, d).reshape(x.shape)
    return there.where(~zero.any(), grad * others.conj())


def _product_of_others(x: Any, dim: int) -> Any:
    count = x.shape[dim]
    one, cat = x.new_ones(x.narrow(dim, 0, 1).shape), TABLE["cat"]
    before = apply(cat, [one, x.narrow(dim, 0, count - 1)], dim).cumprod(dim)
    after = apply(cat, [one, x.narrow(dim, 1, count - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return before * after


def _cumprod(s: Saved) -> Any:
    x, dim, grad, result = _input(s), s.static("dim"), s.g, s.result.conj()
    if x.numel() <= 1 or x.shape[dim] == 1:
        return grad
    x, zero = x.conj(), x == 0
    if local.mode.grad:  # the formula below is right for any number, but its gradient is not
        there = summed_up(result * grad, dim) / x.masked_fill(zero, 1)
        return _by_operand(s).where(zero.any(), there)
    zeros = zero.cumsum(dim)
    before = zeros == 0  # no zero up to here
    there = summed_up((result * grad).masked_fill(~before, 0), dim) / x.masked_fill(zero, 1)
    there = there.masked_fill(~before, 0)
    # At the first zero, of what is before it and of what follows up to the next.
    first, between = zero & (zeros == 1), ~zero & (zeros == 1)
    products = x.masked_fill(~between, 1).cumprod(dim) * grad.masked_fill(zeros != 1, 0)
    one = x.new_ones(x.narrow(dim, 0, 1).shape)
    up_to = apply(TABLE["cat"], [one, result.narrow(dim, 0, x.shape[dim] - 1)], dim)
    return (products.sum(dim, keepdim=True) * up_to).where(first, there)


def _by_operand(s: Saved) -> Any:
    """Compute the gradient of an op's first operand, the only one, without what its result was."""
    return record_saved(s.node.state, (0,), (0,), [s.g], {0: s.node.unpack(0)}, True)[0]


def _copysign(s: Saved) -> Any:
    x = _input(s)
    return s.g * (s.result / x).masked_fill_(x == 0, 0)


def _norm(s: Saved, name: str = "input") -> Any:
    given = s.static("p", s.static("ord", 2))
    p = 2.0 if given in (None, "fro") else given
    if not isinstance(p, (int, float)) or (name == "A" and _of_a_matrix(s)):
        raise NoFormula("a matrix norm")
    return _of_norm(_input(s, name), *_whole(s, name), p)


def _of_norm(x: Any, grad: Any, result: Any, dims: list[int], p: float) -> Any:
    """Differentiate the p-norm of `x` over `dims`, which `grad` and `result` still have."""
    if p == 2:
        return grad * (x / result).masked_fill_(result == 0, 0)
    if p == 0:
        raise NoFormula("a count")
    if p == 1:
        return x.sgn() * grad
    size = x.abs()
    if math.isinf(p):
        most = (size == result) | size.isnan()
        return x.sgn() * (grad / most.sum(dims, keepdim=True) * most)
    if p < 1:
        scaled = x.sgn() * size.pow(p - 1).masked_fill_(x == 0, 0)
        return scaled * grad * result.pow(1 - p)
    scaled = x.sgn() * size.pow(p - 1) if p < 2 else x * size.pow(p - 2)
    return scaled * (grad / result.pow(p - 1)).masked_fill_(result == 0, 0)


def _logsumexp(s: Saved) -> Any:
    grad, result, _ = _whole(s)
    return grad * (_input(s) - result).exp().conj()


def _std(s: Saved) -> Any:
    result = s.result
    return of_variance(s, (s.g / times(result, 2)).masked_fill_(result == 0, 0))


def _std_mean(s: Saved) -> Any:
    return with_mean(s, lambda: _std(s))


def _of_a_matrix(s: Saved) -> bool:
    """Tell whether `linalg.norm` took the norm of matrices."""
    dim, given = s.static("dim"), s.static("ord")
    if given is None:
        return False
    return len(s.shape("A")) == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2


def _extreme_of_all(s: Saved) -> Any:
    x, result = s["input"], s.result
    chosen = (x == result) | (x.isnan() & result.isnan())
    return s.g.new_zeros(x.shape).masked_fill(chosen, s.g / chosen.sum())


def _aminmax(s: Saved) -> Any:
    x, dim = s["input"], s.static("dim")
    total = x.new_zeros(x.shape)
    for grad, found in zip(s.grads, (s.result, s.output(1)), strict=False):
        if grad is None:
            continue
        if dim is not None and not s.static("keepdim", False) and x.dim():
            grad, found = grad.unsqueeze(dim), found.unsqueeze(dim)
        chosen = (x == found) | (x.isnan() & found.isnan())
        count = chosen.sum() if dim is None else chosen.sum(dim, keepdim=True)
        total = total + grad * chosen / count
    return total


def _logcumsumexp(s: Saved) -> Any:
    if s.result.is_complex():
        raise NoFormula("logarithms of signs")
    if local.mode.grad:
        raise NoFormula("the logarithm of no gradient has no derivative")
    x, result, grad, dim = s["input"], s.result, s.g, s.static("dim")
    if not x.dim():
        return grad

    def later(part: Any) -> Any:
        return ((part - result).flip(dim).logcumsumexp(dim).flip(dim) + x).exp()

    nothing = -math.inf
    up = grad.log().where(grad > 0, nothing)
    down = (-grad).log().where(grad < 0, nothing)
    return later(up) - later(down)


def _dist(s: Saved) -> Any:
    x = s["input"] - s["other"]
    return _of_norm(x, s.g, s.result, list(range(x.dim())), s.static("p", 2))


def _erfcx(s: Saved) -> Any:
    return s.g * (2 * s["input"] * s.result - 2 / math.sqrt(math.pi))


def _bessel(s: Saved, zeroth: str, below: Any) -> Any:
    """Differentiate the modified Bessel functions of order 1: I0(x) - I1(x) / x, and 1/2 at 0."""
    x = s["input"]
    tiny = x.abs() <= finfo(x.dtype).eps
    safe = x.where(~tiny, finfo(x.dtype).eps)
    slope = apply(TABLE[zeroth], safe) - s.result * below(safe)
    return s.g * slope.where(~tiny, 0.5)


def _leaky(s: Saved) -> Any:
    slope = s["negative_slope"] if "negative_slope" in s.given else 0.01
    return s.g.where(s.result > 0, s.g * slope)


def _elu(s: Saved, alpha: float = 1.0, scale: float = 1.0) -> Any:
    curve: Any = s["alpha"] if "alpha" in s.given else alpha
    below = 1 / curve if s.node.state.call.op.name == "celu" else 1
    return (s.g * scale).where(s.result > 0, s.g * below * (s.result + curve * scale))


BY_RESULT: dict[str, dict[str, Formula]] = {
    "prod": {"input": _prod},
    "cumprod": {"input": _cumprod},
    "copysign": {"input": _copysign, "other": lambda s: s.g.new_zeros(s.shape("other"))},
    "norm": {"input": _norm},
    "_norm_of_dim": {"input": _norm},
    "linalg.vector_norm": {"x": partial(_norm, name="x")},
    "linalg.norm": {"A": partial(_norm, name="A")},
    "logsumexp": {"input": _logsumexp},
    "std": {"input": _std},
    "std_mean": {"input": _std_mean},
    "aminmax": {"input": _aminmax},
    "logcumsumexp": {"input": _logcumsumexp},
    "dist": {"input": _dist, "other": lambda s: -_dist(s)},
    "special.erfcx": {"input": _erfcx},
    "special.i0e": {
        "input": lambda s: (
            s.g * (apply(TABLE["special.i1e"], s["input"]) - s["input"].sgn() * s.result)
        )
    },
    "special.i1": {"input": partial(_bessel, zeroth="i0", below=lambda x: 1 / x)},
    "special.i1e": {
        "input": partial(_bessel, zeroth="special.i0e", below=lambda x: x.sgn() + 1 / x)
    },
    "special.ndtri": {
        "input": lambda s: s.g * math.sqrt(2 * math.pi) * (s.result * s.result / 2).exp()
    },
    "special.log_ndtr": {
        "input": lambda s: (
            s.g / (s.result + s["input"] * s["input"] / 2).exp() / math.sqrt(2 * math.pi)
        )
    },
    **OF_RESULT,
    "nn.functional.leaky_relu": {"input": _leaky},
    "nn.functional.elu": {"input": _elu},
    "celu": {"input": _elu},
    "selu": {"input": partial(_elu, alpha=SELU_ALPHA, scale=SELU_SCALE)},
    "max": {"input": _extreme_of_all},
    "min": {"input": _extreme_of_all},
    "median": {"input": _extreme_of_all},
    "nanmedian": {"input": _extreme_of_all},
    "hypot": {
        "input": lambda s: s.g * s["input"] / s.result,
        "other": lambda s: s.g * s["other"] / s.result,
    },
    **{
        name: FORMULAS[name]
        for name in ("pow", "exp2", "expm1", "tan", "softmax", "log_softmax", "amax", "amin")
    },
}

# Those among them that are PyTorch's for any number, so that they may be differentiated again.
_TWICE = frozenset(
    {
        "norm", "linalg.norm", "linalg.vector_norm", "dist", "std", "std_mean", "logsumexp",
        "hypot", "max", "min", "median", "nanmedian", "copysign", "_norm_of_dim", "prod", "cumprod",
        "cholesky", "linalg.cholesky", "linalg.cholesky_ex", "special.erfcx", "special.i0e",
        "special.i1", "special.i1e", "special.ndtri", "special.log_ndtr",
        "linalg.inv_ex", "linalg.pinv", "pinverse", "linalg.solve", "linalg.solve_ex",
        "linalg.solve_triangular",
    }
)  # fmt: skip
