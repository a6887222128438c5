"""PyTorch's `torch.nn.init`: each function fills its tensor in place and returns it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE as _TABLE

from .._core.dtypes import float64 as _float64
from .._core.grad_modes import no_grad
from .._ops.calls.functions import function as _function
from .._ops.creation.factories import empty_like as _empty_like
from .._ops.creation.factories import eye as _eye
from .._ops.creation.factories import rand_like as _rand_like

_qr = _function(_TABLE["linalg.qr"])

_ONE = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "sigmoid")  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor by which a nonlinearity's weights are to be larger, so that variances stay.

    Args:
      nonlinearity: its name in `nn.functional`.
      param: the negative slope of "leaky_relu", 0.01 if left out.
    """
    if nonlinearity in _ONE:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """Return how many inputs and outputs each element of a layer has, by its weight."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    """Return how many inputs or outputs each element of a layer has, as `mode` says."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with draws from the uniform distribution over `[a, b)`."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Draws from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Any = None,
) -> Any:  # fmt: skip
    """Draws from the normal distribution, those outside of `[a, b]` drawn again.

    By the inverse of the distribution function, from uniform draws between its values at the
    bounds.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = below((a - mean) / std), below((b - mean) / std)
    with no_grad():  # one write: PyTorch keeps the first draw if all of it lies inside
        # In fewer bits some draws round to the bounds.
        wide = _float64 if tensor.is_floating_point() else tensor.dtype
        drawn = _empty_like(tensor, dtype=wide)
        drawn.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        drawn.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.copy_(drawn.clamp_(min=a, max=b))


def constant_(tensor: Any, val: float) -> Any:
    """Fill with one number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Fill with the identity matrix, or its beginning: as much of the input as fits is kept."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        _eye(*tensor.shape, out=tensor)
    return tensor


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill a convolution's weight so that it keeps its input, as many channels as fit, by group."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs = tensor.size(0)
    if outputs % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    each = outputs // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(each, tensor.size(1))):
                tensor[(g * each + d, d, *middle)] = 1
    return tensor


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform with standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks,
    2010.
    """
    inputs, outputs = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / max(inputs + outputs, 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal with standard deviation `gain * sqrt(2 / (fan_in + fan_out))`."""
    inputs, outputs = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(inputs + outputs, 1)), generator)


def _he(tensor: Any, a: float, mode: str, nonlinearity: str) -> float | None:
    """Return the standard deviation of `kaiming_*`; None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:  # fmt: skip
    """Uniform with standard deviation `gain / sqrt(fan)`.

    He et al., Delving deep into rectifiers, 2015.

    Args:
      a: the negative slope of a leaky relu.
      mode: "fan_in" keeps the variance of what goes forward, "fan_out" that of gradients.
    """
    std = _he(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:  # fmt: skip
    """Normal with standard deviation `gain / sqrt(fan)`; arguments as of `kaiming_uniform_`."""
    std = _he(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a (semi-)orthogonal matrix, of the rows and all other dims together.

    Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks, 2013: the Q of a normal matrix's QR decomposition, with the signs of R's diagonal.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    with no_grad():
        flat = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
        wide = rows < flat.size(1)
        q, r = _qr(flat.t() if wide else flat)
        q = q * r.diagonal().sign()
        tensor.copy_((q.t() if wide else q).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Normal, with a share of zeros in each column.

    Martens, Deep learning via Hessian-free optimization, 2010.

    Args:
      sparsity: the share of each column that becomes 0, rounded up to whole elements.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * tensor.size(0))
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        order = _rand_like(tensor, generator=generator).argsort(0).argsort(0)
        return tensor.masked_fill_(order < zeros, 0)


def _deprecated(new: Callable[..., Any]) -> Callable[..., Any]:
    old = new.__name__.rstrip("_")

    @functools.wraps(new)
    def fill(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return new(*args, **kwargs)

    fill.__name__ = old
    return fill


# By these older names packages fill the weights of their own layers.
_no_grad_uniform_, _no_grad_normal_ = uniform_, normal_
_no_grad_trunc_normal_, _no_grad_fill_, _no_grad_zero_ = trunc_normal_, constant_, zeros_
uniform, normal = _deprecated(uniform_), _deprecated(normal_)
constant, eye, dirac = _deprecated(constant_), _deprecated(eye_), _deprecated(dirac_)
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
orthogonal, sparse = _deprecated(orthogonal_), _deprecated(sparse_)
