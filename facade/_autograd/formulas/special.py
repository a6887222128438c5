"""Gradients of special functions and of activations, as PyTorch's formulas spell them."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.program.op import TABLE

from ..._dispatch.record import apply
from .scalar_ops import over, plus, times
from .tools import Formula, NoFormula, conj

_SUB = TABLE["sub"]


def _through_polygamma(s: Any, order: int) -> Any:
    return s.g * apply(TABLE["polygamma"], s["input"], order)


def _mvlgamma(s: Any) -> Any:
    x, p = s["input"], s.static("p")
    steps = x.new_tensor([k / 2 for k in range(1 - p, 1)])
    return s.g * (steps + x.unsqueeze(-1)).digamma().sum(-1)


def _inverse_square(s: Any) -> Any:
    x, y = s["input"], s["other"]
    square = x * x + y * y
    return square.reciprocal().masked_fill(square == 0, 0)


def _atan2(s: Any, mine: str, other: str) -> Any:
    return s.g * (s[other] if mine == "input" else -s[other]) * s.once(_inverse_square)


def _of_sum_of_powers(s: Any, mine: str, other: str, base: int | None) -> Any:
    """Compute one term's share of the sum of `logaddexp` and its kin."""
    apart = s[other] - s[mine]
    power = apart.exp() if base is None else apply(TABLE["pow"], base, apart)
    return s.g / conj(plus(power, 1))


def _larger(s: Any, first: bool, name: str) -> Any:
    """Give the gradient of `fmax` and `fmin` to what was taken, a number rather than NaN."""
    x, other = s["input"], s["other"]
    mine = (x >= other if name == "fmax" else x <= other).logical_or_(other.isnan())
    return s.g.masked_fill(mine.logical_not_() if first else mine, 0)


def _conjugate(s: Any) -> Any:
    return s.g.conj()


def _polar(s: Any, size: bool) -> Any:
    result = s.result
    return (s.once(_conjugate) * (result.sgn() if size else times(result, 1j))).real


def _logit(s: Any) -> Any:
    if s.static("eps") is not None:
        raise NoFormula("PyTorch's is NaN at the bounds once it is differentiated")
    x = s["input"]
    slope = s.g / (x * apply(_SUB, 1.0, x))
    return slope.where((x >= 0) & (x <= 1), x.new_full((), math.nan))


def _mish(s: Any) -> Any:
    x = s["input"]
    squashed = x.exp().log1p().tanh()
    return s.g * (squashed + x * x.sigmoid() * apply(_SUB, 1.0, squashed * squashed))


def _of_logits(s: Any, mine: str) -> Any:
    """Differentiate `binary_cross_entropy_with_logits`."""
    if s.static("pos_weight") is not None:
        raise NoFormula("weights of what is positive")
    x = s["input"]
    grad = (x.sigmoid() - s["target"] if mine == "input" else -x) * s.g
    if s.static("weight") is not None:
        grad = grad * s["weight"]
    return over(grad, math.prod(s.shape())) if s.static("reduction", "mean") == "mean" else grad


def _pair(formula: Any, *args: Any) -> dict[str, Formula]:
    return {
        "input": lambda s: formula(s, "input", "other", *args),
        "other": lambda s: formula(s, "other", "input", *args),
    }


FORMULAS: dict[str, dict[str, Formula]] = {
    "lgamma": {"input": lambda s: s.g * s["input"].digamma()},
    "digamma": {"input": lambda s: _through_polygamma(s, 1)},
    "polygamma": {"input": lambda s: _through_polygamma(s, s.static("n") + 1)},
    "mvlgamma": {"input": _mvlgamma},
    "i0": {"input": lambda s: s.g * apply(TABLE["special.i1"], s["input"])},
    "deg2rad": {"input": lambda s: times(s.g, math.pi / 180)},
    "rad2deg": {"input": lambda s: times(s.g, 180 / math.pi)},
    "frexp": {"input": lambda s: s.g / s.output(1).exp2()},
    "atan2": _pair(_atan2),
    "logaddexp": _pair(_of_sum_of_powers, None),
    "logaddexp2": _pair(_of_sum_of_powers, 2),
    "ldexp": {
        "input": lambda s: s.g * conj(apply(TABLE["pow"], 2.0, s["other"])),
        "other": lambda s: times(s.g * conj(s.result), math.log(2)),
    },
    **{
        name: {
            "input": lambda s, name=name: _larger(s, True, name),  # type: ignore[misc]
            "other": lambda s, name=name: _larger(s, False, name),  # type: ignore[misc]
        }
        for name in ("fmax", "fmin")
    },
    "complex": {"real": lambda s: s.g.real, "imag": lambda s: s.g.imag},
    "polar": {"abs": lambda s: _polar(s, True), "angle": lambda s: _polar(s, False)},
    "logit": {"input": _logit},
    "nn.functional.mish": {"input": _mish},
    "nn.functional.binary_cross_entropy_with_logits": {
        "input": lambda s: _of_logits(s, "input"), "target": lambda s: _of_logits(s, "target"),
    },
}  # fmt: skip
