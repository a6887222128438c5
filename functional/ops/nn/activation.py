"""Activation functions, elementwise: values, subgradients at kinks and errors are PyTorch's.

A kink is written as `jnp.where` on the side PyTorch's backward takes; a branch that is not chosen
is fed a harmless value, so that its gradient never makes a NaN.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf

from ...program.dtypes import cast, is_complex, promote, scalar_name
from ...program.op import op
from ..elementwise.operands import unmoved, with_jvp
from .checks import need_float, wide, wrap_dim

Array = jax.Array
F = "nn.functional"
# Entered at top level because torch has them there; `nn.functional` exposes them as well.
ALSO_FUNCTIONAL = ("relu", "selu", "celu", "hardshrink", "threshold", "prelu")


def _clamped(x: Array, low: Any, high: Any) -> Array:
    """Clamp with gradient 0 on the limits, and for NaN."""
    low, high = cast(low, x.dtype), cast(high, x.dtype)
    return jnp.where(x <= low, low, jnp.where(x >= high, high, unmoved(x)))


def _no_complex(x: Array) -> None:
    if is_complex(x.dtype):
        raise NotImplementedError("clamp is not supported for complex types")


@op(saves={"result": "*"}, inplace=True)
def relu(input: Array) -> Array:
    """Take the positive part; NaN stays NaN, the gradient at 0 is 0."""
    if input.dtype == np.dtype(bool):
        raise RuntimeError("Boolean inputs not supported for relu")
    _no_complex(input)
    return jnp.where(input <= 0, jnp.zeros((), input.dtype), input)


@op(namespace=F, backward="HardtanhBackward0", saves={"self": "*"}, method=False, inplace=True)
def relu6(input: Array) -> Array:
    """Clamp to [0, 6]."""
    return hardtanh(input, 0, 6)


def _need_order(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> None:
    known = isinstance(min_val, (int, float)) and isinstance(max_val, (int, float))
    if known and min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")


@op(
    namespace=F,
    saves={"self": "*"},
    method=False,
    inplace=True,
    numbers=("min_val", "max_val"),
    fits={"min_val": "any", "max_val": "any"},
    need=_need_order,
)
def hardtanh(input: Array, min_val: Any = -1.0, max_val: Any = 1.0) -> Array:
    """Clamp to [min_val, max_val]; the gradient on both limits is 0, unlike `clamp`'s."""
    known = isinstance(min_val, (int, float)) and isinstance(max_val, (int, float))
    _need_order(input, min_val, max_val)
    if input.dtype == np.dtype(bool):
        raise RuntimeError("Bool inputs not supported for hardtanh")
    _no_complex(input)
    if input.dtype == np.dtype("uint8") and known and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return _clamped(input, min_val, max_val)


@op(namespace=F, saves={"self": "*"}, method=False, inplace=True, numbers=("negative_slope",))
def leaky_relu(input: Array, negative_slope: Any = 0.01) -> Array:
    """Scale the negative part; the gradient at 0 is `negative_slope`."""
    need_float(input, "leaky_relu_cpu")
    x = wide(input)
    slope = jnp.where(x > 0, 1, cast(negative_slope, x.dtype))  # which may be infinite
    return cast(x * slope, input.dtype)


# JAX's derivative is the result plus 1, of which little is left far below 0.
_expm1 = with_jvp(lambda x: jnp.expm1(x), lambda r, x, dx: dx[0] * jnp.exp(x[0]))


def _elu(input: Array, alpha: Any, scale: Any, input_scale: Any) -> Array:
    need_float(input, "elu_cpu")
    x = wide(input)
    below = jnp.where(x > 0, jnp.zeros((), x.dtype), x)
    curve = _expm1(below * input_scale) * (alpha * scale)
    # At 0 itself PyTorch has the slope of the left side and no curvature.
    left = jnp.where(x < 0, curve, below * (alpha * scale * input_scale))
    return cast(jnp.where(x > 0, x * scale, left), input.dtype)


@op(namespace=F, saves={"self": "*"}, method=False, inplace=True, numbers=("alpha",))
def elu(input: Array, alpha: Any = 1.0) -> Array:
    """Take `alpha * (exp(x) - 1)` below 0."""
    return _elu(input, alpha, 1.0, 1.0)


@op(backward="EluBackward0", saves={"self": "*"}, method=False, inplace=True)
def selu(input: Array) -> Array:
    """Apply ELU with the self-normalizing constants (https://arxiv.org/abs/1706.02515)."""
    return _elu(input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


def _need_slope(input: Any, alpha: Any = 1.0) -> None:
    if isinstance(alpha, (int, float)) and alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


@op(saves={"self": "*"}, method=False, inplace=True, numbers=("alpha",), need=_need_slope)
def celu(input: Array, alpha: Any = 1.0) -> Array:
    """Apply ELU to `x / alpha`, continuously differentiable."""
    _need_slope(input, alpha)
    return _elu(input, alpha, 1.0, 1.0 / alpha)


@op(namespace=F, saves={"self": "*"}, method=False)
def gelu(input: Array, approximate: str = "none") -> Array:
    """Weigh by the normal distribution function, exact or by tanh."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    need_float(input, "GeluKernelImpl")
    x = wide(input)
    if approximate == "none":
        y = x * 0.5 * (1 + erf(x * math.sqrt(0.5)))
    else:
        y = 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return cast(y, input.dtype)


@op(namespace=F, saves={"self": "*"}, method=False, inplace=True)
def silu(input: Array) -> Array:
    """Multiply by the sigmoid."""
    if is_complex(input.dtype):
        return input / (1 + jnp.exp(-input))
    need_float(input, "silu_cpu")
    x = wide(input)
    return cast(x * jax.nn.sigmoid(x), input.dtype)


@op(namespace=F, saves={"self": "*"}, method=False, inplace=True)
def mish(input: Array) -> Array:
    """Multiply by the tanh of the softplus."""
    need_float(input, "mish_cpu")
    x = wide(input)
    return cast(x * jnp.tanh(jnp.logaddexp(x, jnp.zeros((), x.dtype))), input.dtype)


def _softplus_tangent(result: Array, primals: Any, tangents: Any) -> Any:
    (x, beta), (dx, _) = primals, tangents
    z = jnp.exp(x * beta)
    return dx * (z / (z + 1))


# With its derivative, in which `beta` cancels, for it may be 0.
_softplus = with_jvp(lambda x, beta: jnp.log1p(jnp.exp(x * beta)) / beta, _softplus_tangent)


@op(namespace=F, saves={"self": "*"}, method=False, numbers=("beta", "threshold"))
def softplus(input: Array, beta: Any = 1, threshold: Any = 20) -> Array:
    """Take `log(1 + exp(beta * x)) / beta`, the identity where `beta * x > threshold`."""
    need_float(input, "softplus_cpu")
    x = wide(input)
    linear = x * beta > threshold
    curve = _softplus(jnp.where(linear, jnp.zeros((), x.dtype), x), jnp.asarray(beta, x.dtype))
    return cast(jnp.where(linear, x, curve), input.dtype)


@op(namespace=F, backward="DivBackward0", saves={"self": "*"}, method=False)
def softsign(input: Array) -> Array:
    """Divide by one plus the absolute value."""
    if input.dtype == np.dtype(bool):
        raise NotImplementedError("\"abs_cpu\" not implemented for 'Bool'")
    (x,) = promote(input, to_float=True)
    w = wide(x)
    return cast(w / (1 + jnp.abs(w)), x.dtype)


@op(namespace=F, saves={"self": "*"}, method=False, inplace=True)
def hardsigmoid(input: Array) -> Array:
    """Clamp `x / 6 + 1 / 2` to [0, 1]."""
    need_float(input, "hardsigmoid_cpu")
    x = wide(input)
    return cast(_clamped(x + 3, 0, 6) / 6, input.dtype)


@op(namespace=F, saves={"self": "*"}, method=False, inplace=True)
def hardswish(input: Array) -> Array:
    """Multiply by the hard sigmoid; the gradient is 0 up to -3 and 1 from 3 on."""
    need_float(input, "hardswish_cpu")
    x = wide(input)
    inner = jnp.where(jnp.abs(x) < 3, x, jnp.where(x == x, 0, x))  # infinity would give NaN
    middle = inner * (inner + 3) / 6
    y = jnp.where(x <= -3, jax.lax.stop_gradient(x * 0), jnp.where(x < 3, middle, x))
    return cast(y, input.dtype)


@op(namespace=F, backward="LogSigmoidBackward0", saves={"self": "*"}, method=False)
def logsigmoid(input: Array) -> Array:
    """Take the logarithm of the sigmoid, without overflow."""
    need_float(input, "log_sigmoid_cpu")
    return cast(jax.nn.log_sigmoid(wide(input)), input.dtype)


@op(method=False, backward="PreluKernelBackward0", saves={"self": "*", "weight": "*"})
def _prelu_kernel(input: Array, weight: Array) -> Array:
    """Scale the negative part by a weight that broadcasts to `input`."""
    need_float(input, "prelu_cpu")
    return jnp.where(input > 0, input, weight * input)


@op(backward="PreluKernelBackward0", saves={"self": "*", "weight": "*"})
def prelu(input: Array, weight: Array) -> Array:
    """Scale the negative part by one weight, or by one a channel (dimension 1)."""
    if input.dtype != weight.dtype:
        raise RuntimeError(
            "prelu: Type promoting not supported. Got "
            f"{scalar_name(input.dtype)} and {scalar_name(weight.dtype)}"
        )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight.size != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.size} and channel size = {channels}."
            )
    shape = (1, weight.size) + (1,) * (input.ndim - 2) if input.ndim > 1 else (weight.size,)
    return _prelu_kernel(input, weight.reshape(() if input.ndim == 0 else shape))


@op(namespace=F, saves={"self": "*"}, method=False)
def glu(input: Array, dim: int = -1) -> Array:
    """Multiply one half by the sigmoid of the other."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    need_float(input, "glu_cpu")
    a, b = jnp.split(wide(input), 2, axis=dim)
    return cast(a * jax.nn.sigmoid(b), input.dtype)
