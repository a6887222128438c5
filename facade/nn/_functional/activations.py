"""Activations: the table's, with PyTorch's `inplace` argument, and softmaxes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax

from leafax.functional.program.op import TABLE, Op

from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.known_unary import known_of_one
from ..._dispatch.record import apply, known
from ..._ops.calls.functions import function, named, uniform
from ..._ops.creation.factories import empty_like, zeros_like
from ..._ops.creation.generator import key as random_key
from ..._ops.writes.apply_inplace import apply_inplace
from ..._rules.inplace_activation_slopes import sloped

_div = function(TABLE["div"])


def need_tensor(name: str, input: Any, place: str = " (position 1)", said: str = "input") -> None:
    """Raise PyTorch's words if an argument is no tensor.

    Args:
      place: where the argument stands; "" where it was given by its name.
    """
    if not isinstance(input, (Handle, jax.Array)):  # of arrays the op says more
        raise TypeError(
            f"{name}(): argument '{said}'{place} must be Tensor, not {name_of_type(input)}"
        )


def with_inplace(op: Op, name: str) -> Callable[..., Any]:
    """Return the function of an elementwise op with `inplace` as its last argument."""
    count = len(op.parameters)

    @in_one_step
    def write(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = uniform(op, args, kwargs)
        return apply_inplace(sloped(op, *args, **kwargs), *args, **kwargs)

    def fn(input: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if len(args) == count:
            *rest, inplace = args
            args = tuple(rest)
        if not inplace:
            more = args or kwargs
            out = known(op, (input, *args), kwargs) if more else known_of_one(op, input)
            if out is not None:
                return out
        need_tensor(name + "_" if inplace else name, input)
        if inplace:
            return write(input, *args, **kwargs)
        args, kwargs = uniform(op, (input, *args), kwargs)
        return apply(op, *args, **kwargs)

    return named(fn, op, name)


def inplace(op: Op, name: str) -> Callable[..., Any]:
    """Return the in-place function of an op, `relu_`."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        if not args and "input" in kwargs:
            args = (kwargs.pop("input"),)
            need_tensor(name, *args, place="")
        elif args:
            need_tensor(name, args[0])
        args, kwargs = uniform(op, args, kwargs)
        return apply_inplace(sloped(op, *args, **kwargs), *args, **kwargs)

    return named(fn, op, name)


def _softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`exp(x)` scaled to sum to 1 along `dim`."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Return the logarithm of `softmax`, without its loss of precision."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`softmax` of `-input`."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Draw from the Gumbel-softmax distribution; one-hot if `hard`, with soft gradients."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Any:  # fmt: skip
    """Leaky relu with slopes drawn from [lower, upper) while training."""
    need_tensor("rrelu_" if inplace else "rrelu", input)
    op, where = TABLE["rrelu"], input._v.device
    if inplace:
        op = sloped(op, input, lower, upper, training)
        drawn_by = random_key(None, where)
        return apply_inplace(op, input, lower, upper, training, _key=drawn_by)
    return apply(op, random_key(None, where), input, lower, upper, training)


def rrelu_(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Any:
    """`rrelu` in place."""
    return rrelu(input, lower, upper, training, True)


def tanh(input: Any) -> Any:
    """Return the hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Any) -> Any:
    """`1 / (1 + exp(-input))`."""
    return input.sigmoid()


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """`input` divided by its p-norm along `dim`, which counts as `eps` at least."""
    scale = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / scale
    return _div(input, scale, out=out)


FUNCTIONS = {
    name: with_inplace(TABLE[name] if name in TABLE else TABLE["nn.functional." + name], name)
    for name in (
        "relu", "relu6", "hardtanh", "leaky_relu", "elu", "selu", "celu", "silu", "mish",
        "hardsigmoid", "hardswish", "threshold",
    )
}  # fmt: skip
FUNCTIONS |= {
    name + "_": inplace(
        TABLE[name] if name in TABLE else TABLE["nn.functional." + name], name + "_"
    )
    for name in ("relu", "hardtanh", "leaky_relu", "elu", "selu", "celu", "threshold")
}
