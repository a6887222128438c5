"""Gradients of elementwise ops, as PyTorch's formulas spell them."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import TABLE, Op

from ..._dispatch.record import apply
from .scalar_ops import DIV, MUL, minus, over, plus, times
from .tools import Formula, NoFormula, conj


def _of_result(name: str, fn: Callable[..., Any]) -> Op:
    """Compute the gradient of an op as an op of the incoming gradient and the result."""
    return Op(fn, name=name, saves={"result": "grad_output", "grad_output": "result"})


def _sigmoid_backward(grad_output: Any, result: Any) -> Any:
    return grad_output * (1 - jnp.conj(result)) * jnp.conj(result)


def _tanh_backward(grad_output: Any, result: Any) -> Any:
    return grad_output * jnp.conj(1 - result * result)


def _threshold_backward(grad_output: Any, result: Any) -> Any:
    return jnp.where(result <= 0, 0, grad_output)  # NaN passes


_SIGMOID = _of_result("sigmoid_backward", _sigmoid_backward)
_TANH = _of_result("tanh_backward", _tanh_backward)
_THRESHOLD = _of_result("threshold_backward", _threshold_backward)


def _softmax_backward(grad_output: Any, result: Any, dim: int) -> Any:
    inner = grad_output * result
    return inner - result * _summed(inner, dim)


def _log_softmax_backward(grad_output: Any, result: Any, dim: int) -> Any:
    return grad_output - jnp.exp(result) * _summed(grad_output, dim)


def _summed(x: Any, dim: int) -> Any:
    return x.sum(dim, keepdims=True) if x.ndim else x


_SOFTMAX = _of_result("_softmax_backward_data", _softmax_backward)
_LOG_SOFTMAX = _of_result("_log_softmax_backward_data", _log_softmax_backward)


def _pow_base(s: Any) -> Any:
    exponent = s["exponent"]
    if isinstance(exponent, (int, float, complex)):
        if exponent == 0:
            return s.g.new_zeros(s.shape())
        return s.g * conj(times(s["input"].pow(exponent - 1), exponent))
    power = s.g * conj(exponent * s["input"].pow(minus(exponent, 1)))
    return power.new_zeros(()).where(exponent == 0, power)


def _pow_exponent(s: Any) -> Any:
    base, exponent = s["input"], s["exponent"]
    if isinstance(base, (int, float, complex)):
        power = conj(times(s.result, _log(base, exponent.is_complex())))
        if base:
            return s.g * power
        zero = _grows(exponent)
    else:
        power = conj(s.result * base.to(s.result.dtype).log())
        zero = (base == 0) & _grows(exponent)
    return s.g * power.new_zeros(()).where(zero, power)


def _log(base: complex, into_complex: bool) -> complex:
    """Take the logarithm as C does: NaN of what is negative, unless it is complex."""
    if isinstance(base, complex) or into_complex:
        return cmath.log(base) if base else complex(-math.inf, 0)
    return math.log(base) if base > 0 else -math.inf if base == 0 else math.nan


def _grows(exponent: Any) -> Any:
    """Mark where a power of 0 is no infinity."""
    if exponent.is_complex():
        return (exponent.imag == 0) & (exponent.real >= 0)
    return exponent >= 0


def _acosh(s: Any) -> Any:
    x = s["input"]
    if x.is_complex():
        return s.g * conj(plus(x, 1).rsqrt() * minus(x, 1).rsqrt())
    return s.g * minus(x * x, 1).rsqrt()


def _erfinv(s: Any) -> Any:
    root = s["input"].erfinv()
    return times(root.pow(2).exp(), math.sqrt(math.pi) / 2) * s.g


def _angle(s: Any) -> Any:
    x = s["input"]
    if not x.is_complex():
        raise NoFormula
    return x.new_zeros(()).where(x == 0, times(s.g * x / x.abs().pow(2), 1j))


def _sgn(s: Any) -> Any:
    if not s.g.is_complex():
        raise NoFormula
    size, sign = s["input"].abs(), s.result
    turned = (s.g - sign * sign * conj(s.g)) / times(size, 2)
    return turned.masked_fill(size == 0, 0)


def _where(s: Any, first: bool) -> Any:
    zero = s.g.new_zeros(())
    there = s["condition"]
    return s.g.where(there, zero) if first else zero.where(there, s.g)


def _value(s: Any) -> Any:
    return s["value"] if "value" in s.given else 1


def _xlogy(s: Any) -> Any:
    x, other = s["input"], s["other"]
    grad = s.g.xlogy(other)
    if isinstance(other, (int, float)):
        return grad if other > 0 else grad.masked_fill(x == 0, 0.0)
    return grad.masked_fill((x == 0) & (other <= 0), 0.0)


def _chosen(s: Any, mine: str, other: str, ordered: str) -> Any:
    """Compute the gradient of `maximum` or `minimum`: equal elements share it."""
    a, b = s[mine], s[other]
    share = over(s.g, 2).where(a == b, s.g)
    return share.masked_fill(a < b if ordered == "lt" else a > b, 0)


def _weighed(s: Any, start: bool) -> Any:
    """Compute the gradient of one of the two that `lerp` is between."""
    weight = s["weight"]
    if isinstance(weight, (int, float, complex)):
        return times(s.g, conj(1 - weight if start else weight))
    return s.g * conj(apply(TABLE["sub"], 1, weight) if start else weight)


def _again(s: Any, by_number: Op) -> Any:
    """Multiply, or divide, the gradient by what the op had; by a number as a formula has it."""
    made = s.node.state.call.op.backward == by_number.backward
    return apply(by_number if made else TABLE[by_number.name], s.g, conj(s["other"]))


FORMULAS: dict[str, dict[str, Formula]] = {
    "add": {"input": lambda s: s.g, "other": lambda s: s.scaled(s.g, "alpha")},
    "sub": {"input": lambda s: s.g, "other": lambda s: s.scaled(-s.g, "alpha")},
    "rsub": {"input": lambda s: s.scaled(-s.g, "alpha"), "other": lambda s: s.g},
    "mul": {
        "input": lambda s: _again(s, MUL),
        "other": lambda s: s.g * conj(s["input"]),
    },
    "div": {
        "input": lambda s: _again(s, DIV),
        "other": lambda s: -s.g * conj((s["input"] / s["other"]) / s["other"]),
    },
    "addcmul": {
        "input": lambda s: s.g,
        "tensor1": lambda s: s.g * conj(times(s["tensor2"], _value(s))),
        "tensor2": lambda s: s.g * conj(times(s["tensor1"], _value(s))),
    },
    "addcdiv": {
        "input": lambda s: s.g,
        "tensor1": lambda s: s.g * conj(s.g.new_tensor(_value(s)) / s["tensor2"]),
        "tensor2": lambda s: (
            -s.g * conj(times(s["tensor1"], _value(s)) / (s["tensor2"] * s["tensor2"]))
        ),
    },
    "fmod": {
        "input": lambda s: s.g,
        "other": lambda s: -s.g * s["input"].div(s["other"], rounding_mode="trunc"),
    },
    "remainder": {
        "input": lambda s: s.g,
        "other": lambda s: -s.g * s["input"].div(s["other"], rounding_mode="floor"),
    },
    "frac": {"input": lambda s: s.g},
    "xlogy": {"input": _xlogy, "other": lambda s: s.g * s["input"] / s["other"]},
    "neg": {"input": lambda s: -s.g},
    "pow": {"input": _pow_base, "exponent": _pow_exponent},
    "square": {"input": lambda s: s.g * conj(times(s["input"].pow(1), 2))},
    "exp": {"input": lambda s: s.g * conj(s.result)},
    "exp2": {"input": lambda s: times(s.g * conj(s.result), math.log(2))},
    "expm1": {"input": lambda s: s.g * plus(conj(s.result), 1)},
    "log": {"input": lambda s: s.g / conj(s["input"])},
    "log2": {"input": lambda s: s.g / times(conj(s["input"]), math.log(2))},
    "log10": {"input": lambda s: s.g / times(conj(s["input"]), math.log(10))},
    "log1p": {"input": lambda s: s.g / conj(plus(s["input"], 1))},
    "sin": {"input": lambda s: s.g * conj(s["input"].cos())},
    "cos": {"input": lambda s: s.g * -conj(s["input"].sin())},
    "tan": {"input": lambda s: s.g * conj(plus(s.result.pow(2), 1))},
    "sinh": {"input": lambda s: s.g * conj(s["input"].cosh())},
    "cosh": {"input": lambda s: s.g * conj(s["input"].sinh())},
    "asin": {"input": lambda s: s.g * conj(plus(-s["input"] * s["input"], 1).rsqrt())},
    "acos": {"input": lambda s: s.g * -conj(plus(-s["input"] * s["input"], 1).rsqrt())},
    "atan": {"input": lambda s: s.g / conj(plus(s["input"] * s["input"], 1))},
    "asinh": {"input": lambda s: s.g * conj(plus(s["input"].pow(2), 1).rsqrt())},
    "acosh": {"input": _acosh},
    "atanh": {"input": lambda s: times(s.g, 1) / conj(apply(TABLE["sub"], 1, s["input"].pow(2)))},
    "sqrt": {"input": lambda s: s.g / times(conj(s.result), 2)},
    "rsqrt": {"input": lambda s: times(s.g, -0.5) * conj(s.result.pow(3))},
    "reciprocal": {"input": lambda s: -s.g * conj(s.result * s.result)},
    "erf": {"input": lambda s: times((-(s["input"].pow(2))).exp(), 2 / math.sqrt(math.pi)) * s.g},
    "erfc": {"input": lambda s: times((-(s["input"].pow(2))).exp(), -2 / math.sqrt(math.pi)) * s.g},
    "erfinv": {"input": _erfinv},
    "angle": {"input": _angle},
    "sgn": {"input": _sgn},
    "sigmoid": {"input": lambda s: apply(_SIGMOID, s.g, s.result)},
    "tanh": {"input": lambda s: apply(_TANH, s.g, s.result)},
    "relu": {"input": lambda s: apply(_THRESHOLD, s.g, s.result)},
    "threshold_backward": {
        "grad_output": lambda s: apply(_THRESHOLD, s.g, s["result"]),
        "result": lambda s: s.g.new_zeros(s.g.shape),  # nothing to differentiate any more
    },
    "abs": {"input": lambda s: s.g * s["input"].sgn()},
    "maximum": {
        "input": lambda s: _chosen(s, "input", "other", "lt"),
        "other": lambda s: _chosen(s, "other", "input", "lt"),
    },
    "minimum": {
        "input": lambda s: _chosen(s, "input", "other", "gt"),
        "other": lambda s: _chosen(s, "other", "input", "gt"),
    },
    "softmax": {"input": lambda s: apply(_SOFTMAX, s.g, s.result, s.static("dim"))},
    "log_softmax": {"input": lambda s: apply(_LOG_SOFTMAX, s.g, s.result, s.static("dim"))},
    "lerp": {
        "input": lambda s: _weighed(s, True),
        "end": lambda s: _weighed(s, False),
        "weight": lambda s: s.g * conj(s["end"] - s["input"]),
    },
    "where": {"input": lambda s: _where(s, True), "other": lambda s: _where(s, False)},
}
