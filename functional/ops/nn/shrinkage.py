"""Activations that set what is small to a constant: shrinkage and threshold."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...program.dtypes import cast, finfo, is_complex, promote, scalar_name
from ...program.op import op
from ..elementwise.operands import unmoved
from .checks import need_float, wide

Array = jax.Array


F = "nn.functional"


@op(saves={"self": "*"}, numbers=("lambd",), fits={"lambd": "any"})
def hardshrink(input: Array, lambd: Any = 0.5) -> Array:
    """Zero what lies in [-lambd, lambd]."""
    need_float(input, "hardshrink_cpu")
    limit = cast(lambd, input.dtype)
    inside = (input >= -limit) & (input <= limit)
    return jnp.where(inside, jnp.zeros((), input.dtype), unmoved(input))


def _need_lambda(input: Any, lambd: Any = 0.5) -> None:
    need_float(input, "softshrink_check")
    if isinstance(lambd, (int, float)):
        limit = float(finfo(input.dtype).max)
        if not 0 <= lambd <= limit:
            raise RuntimeError(
                f"lambda must be in range [0, {limit:g}] for input dtype "
                f"{scalar_name(input.dtype)}, but found {lambd:g}"
            )


@op(namespace=F, saves={"self": "*"}, method=False, numbers=("lambd",), need=_need_lambda)
def softshrink(input: Array, lambd: Any = 0.5) -> Array:
    """Move towards zero by `lambd`; NaN stays NaN."""
    _need_lambda(input, lambd)
    x = wide(input)
    step = cast(lambd, x.dtype)
    inside = jax.lax.stop_gradient(x * 0)  # NaN, or 0 with its sign
    y = jnp.where(x > step, x - step, jnp.where(x < -step, x + step, inside))
    return cast(y, input.dtype)


@op(namespace=F, backward="SubBackward0", method=False)
def tanhshrink(input: Array) -> Array:
    """Subtract the tanh."""
    if input.dtype == np.dtype(bool):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    (x,) = promote(input, to_float=True)
    # tanh is rounded to the dtype first: a composite in PyTorch.
    return x - cast(jnp.tanh(wide(x)), x.dtype)


@op(
    saves={"self": "*"},
    method=False,
    inplace=True,
    numbers=("threshold", "value"),
    fits={"threshold": "integer", "value": "any"},
)
def threshold(input: Array, threshold: Any, value: Any) -> Array:
    """Put `value` where the input is not above `threshold`."""
    if input.dtype == np.dtype(bool) or is_complex(input.dtype):
        raise NotImplementedError(
            f"\"threshold_cpu\" not implemented for '{scalar_name(input.dtype)}'"
        )
    x = wide(input)
    return jnp.where(x <= cast(threshold, x.dtype), cast(value, input.dtype), input)
